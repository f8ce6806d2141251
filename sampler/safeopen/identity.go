package safeopen

// identity tells a file from others, and how long it was when it was opened.
type identity struct {
	device, inode uint64
	size          int64
}
