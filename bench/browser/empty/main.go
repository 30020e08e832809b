// Command empty does nothing: start.mjs compares the start of rayo with the start of Go.
package main

func main() {}
