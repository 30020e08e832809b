package env

import "syscall"

// Get returns the value of a variable, "" if it is not set.
func Get(name string) string {
	v, _ := syscall.Getenv(name)
	return v
}
