package interp

var vecCrypto = []vecOp{}
