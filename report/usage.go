package report

// UsageError is a call that is wrong in itself.
type UsageError struct{ error }

// BadInput says of an error that the call is wrong in itself.
func BadInput(err error) error { return UsageError{err} }
