package ahead

// processorTime reads the processor's clock (TSC, CNTVCT_EL0).
func processorTime() uint64
