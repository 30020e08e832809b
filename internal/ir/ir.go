// Package ir represents typed scalar expressions as immutable nodes. An elementwise operation of
// package op consists of such nodes, and every printer (vector assembly, Go, WGSL, PTX) reads them.
//
// The functions of build.go make nodes: they check types and fold constants. Nodes never change
// afterwards, so expressions may share them: an expression is a directed acyclic graph. [Flatten]
// converts it to a list in evaluation order and merges equal nodes. [Lower] replaces functions that
// a back end does not have by arithmetic that every back end has.
package ir

import "github.com/rayo-go/rayo/internal/fmt"

// Type is the type of a scalar value in a register.
type Type uint8

// The types. Storage formats that are narrower (bfloat16, quantised blocks)
// are converted when they are loaded and never appear here.
const (
	Invalid Type = iota
	F32
	I32
	U32
	Bool
	// F16 is a half float in a register: only in a Program, and only for
	// targets that have it.
	F16
)

var typeNames = [...]string{"invalid", "f32", "i32", "u32", "bool", "f16"}

// String returns the name of the type in WGSL.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// Integer reports whether t is I32 or U32.
func (t Type) Integer() bool { return t == I32 || t == U32 }

// Code is the operation of a node. The comments of the table in code.go define
// the codes.
type Code uint8

// Node is one value of an expression.
type Node struct {
	Code Code
	Type Type
	// Index is the number of the operand for Arg, and of the parameter for Param; otherwise 0.
	Index int
	// Value is the value of a Const. A float constant holds a float32 value
	// exactly; an integer constant holds the integer; a Bool holds 0 or 1.
	Value float64
	// Args are the operands: as many as Code.Arity returns. The rest is nil.
	Args [3]*Node
	// depth is the length of the longest path to an operand.
	depth int32
}

// MaxDepth limits the depth of an expression, because functions that walk it are recursive.
const MaxDepth = 4096

// Operands returns the operands of n.
func (n *Node) Operands() []*Node { return n.Args[:n.Code.Arity()] }
