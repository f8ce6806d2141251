//go:build !amd64

package model

var haveFront bool
