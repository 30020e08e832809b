// Package incomparable keeps functions that compare structs out of programs.
package incomparable

// Type is the type of a first field, named _, of large structs that are not compared. The compiler writes a function that compares
// two values for each type of struct that it could compare, and such functions stay in a program if only values in interfaces could be
// compared. In pages each takes 150 to 400 bytes after compression.
type Type [0]func()
