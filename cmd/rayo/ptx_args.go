package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx/emu"
)

// argument is an argument of a kernel on the command line.
type argument struct {
	text   string
	typ    string // the type of the elements, or of the number
	bare   bool   // a number without a type: it gets the type of the parameter, if that is known
	array  bool
	n      int
	data   []byte // the contents of an array, or nil
	number uint64 // the bits of a number
}

// elementSizes has the types of elements and numbers, and their sizes in bytes.
var elementSizes = map[string]int{
	"f64": 8, "u64": 8, "s64": 8, "f32": 4, "u32": 4, "s32": 4, "b32": 4, "f16": 2, "bf16": 2, "u16": 2, "s16": 2, "u8": 1, "s8": 1,
}

// maxArray is the largest size in bytes of an array on a command line.
const maxArray = 256 << 20

const argumentHelp = "an argument is a number, as 1024 or 0.5, of the parameter's type or of its own, as u64:7, or an array, as f32[1024] (with nothing in it), " +
	"f32[1024]=0, f32[4]=1,2,3,4, f32[1024]=random or =iota, and f32[]=@FILE"

// parseArgument parses an argument: argumentHelp describes the syntax.
func parseArgument(s string, seed uint64) (*argument, error) {
	a := &argument{text: s}
	var err error
	if typ, array, ok := strings.Cut(s, "["); ok {
		a.typ, a.array = typ, true
		err = a.parseArray(array, seed)
	} else {
		err = a.parseNumber()
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// wrong returns an error about an argument, with argumentHelp.
func (a *argument) wrong(format string, args ...any) error {
	return fmt.Errorf("argument %q: %s; %s", a.text, fmt.Sprintf(format, args...), argumentHelp)
}

func (a *argument) parseNumber() error {
	typ, value, ok := strings.Cut(a.text, ":")
	if a.bare = !ok; a.bare {
		value = a.text
		types := []string{"u32", "s32", "u64", "s64", "f32"}
		typ = types[max(slices.IndexFunc(types, func(t string) bool { _, err := parseElement(t, value); return err == nil }), 0)]
	}
	if a.typ = typ; elementSizes[typ] < 4 {
		return a.wrong("no number is of type %q", typ)
	}
	bits, err := parseElement(typ, value)
	if err != nil {
		return a.wrong("%v", err)
	}
	a.number = bits
	return nil
}

// parseArray parses the part of an array after the bracket.
func (a *argument) parseArray(s string, seed uint64) error {
	if elementSizes[a.typ] == 0 {
		return a.wrong("no elements are of type %q", a.typ)
	}
	count, rest, ok := strings.Cut(s, "]")
	if !ok {
		return a.wrong("] is missing")
	}
	value, filled := strings.CutPrefix(rest, "=")
	if rest != "" && !filled {
		return a.wrong("%q after the size", rest)
	}
	file, fromFile := strings.CutPrefix(value, "@")
	list := strings.Split(value, ",")
	switch limit := maxArray / elementSizes[a.typ]; {
	case count != "":
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || n > limit {
			return a.wrong("%q elements: there may be 1 to %d", count, limit)
		}
		a.n = n
	case fromFile:
	case filled && len(list) > 1:
		a.n = len(list)
	default:
		return a.wrong("how many elements?")
	}
	switch {
	case !filled:
		return nil
	case fromFile:
		return a.fillFromFile(file)
	case arrayFills[value] != nil:
		rnd := rand.New(rand.NewPCG(seed, 1))
		a.fill(func(i int) uint64 { return arrayFills[value](a.typ, i, rnd) })
		return nil
	}
	return a.fillFromList(list)
}

// arrayFills has the functions for the named contents of arrays.
var arrayFills = map[string]func(typ string, i int, rnd *rand.Rand) uint64{
	"random": func(typ string, i int, rnd *rand.Rand) uint64 {
		if isFloatElement(typ) {
			return floatElement(typ, rnd.NormFloat64())
		}
		return rnd.Uint64()
	},
	"iota": func(typ string, i int, _ *rand.Rand) uint64 {
		if isFloatElement(typ) {
			return floatElement(typ, float64(i))
		}
		return uint64(i)
	},
}

func isFloatElement(typ string) bool { return typ[0] == 'f' || typ == "bf16" }

// fill sets each element i to of(i).
func (a *argument) fill(of func(i int) uint64) {
	size := elementSizes[a.typ]
	a.data = make([]byte, a.n*size)
	for i := range a.n {
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], of(i))
		copy(a.data[i*size:], w[:size])
	}
}

func (a *argument) fillFromFile(name string) error {
	size := elementSizes[a.typ]
	data, err := readArray(name)
	if err != nil {
		return err
	}
	if len(data) == 0 || len(data)%size != 0 || a.n != 0 && a.n*size > len(data) {
		return a.wrong("the file has %d bytes", len(data))
	}
	if a.n == 0 {
		a.n = len(data) / size
	}
	a.data = data[:a.n*size]
	return nil
}

// fillFromList sets the elements to the values of a list. If the list has one value, all elements get it.
func (a *argument) fillFromList(list []string) error {
	if len(list) != 1 && len(list) != a.n {
		return a.wrong("%d values for %d elements", len(list), a.n)
	}
	var bits []uint64
	for _, v := range list {
		b, err := parseElement(a.typ, v)
		if err != nil {
			return a.wrong("%v", err)
		}
		bits = append(bits, b)
	}
	a.fill(func(i int) uint64 { return bits[i%len(bits)] })
	return nil
}

// as sets the type of a number without a type to typ, the declared type of its parameter.
func (a *argument) as(typ string) error {
	if !a.bare || a.array {
		return nil
	}
	types := []string{typ}
	switch size, number := typ[1:], typ[:1]; {
	case size != "32" && size != "64":
		return nil // the launch reports a mismatch
	case number == "u": // compilers also write u for signed integers
		types = []string{typ, "s" + size}
	case number == "b":
		types = []string{"u" + size, "s" + size, "f" + size}
	}
	for _, t := range types {
		if bits, err := parseElement(t, a.text); err == nil {
			a.typ, a.number = t, bits
			return nil
		}
	}
	return fmt.Errorf("argument %q is not a %s, the type of the kernel's parameter", a.text, typ)
}

// asParameters calls as for all arguments of a kernel.
func asParameters(args []*argument, k *emu.Kernel) error {
	for i, p := range k.Params() {
		if i < len(args) {
			if err := args[i].as(p.Type); err != nil {
				return err
			}
		}
	}
	return nil
}

func readArray(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxArray+1))
	if err == nil && len(b) > maxArray {
		err = fmt.Errorf("%s has more than %d MiB", name, maxArray>>20)
	}
	return b, err
}

// parseElement returns the bits of an element or a number.
func parseElement(typ, s string) (uint64, error) {
	s = strings.TrimSpace(s)
	bits := 8 * elementSizes[typ]
	switch typ[0] {
	case 'u':
		v, err := strconv.ParseUint(s, 0, bits)
		if err != nil {
			return 0, fmt.Errorf("%q is not a valid %s", s, typ)
		}
		return v, nil
	case 's':
		v, err := strconv.ParseInt(s, 0, bits)
		if err != nil {
			return 0, fmt.Errorf("%q is not a valid %s", s, typ)
		}
		return uint64(v), nil
	}
	if typ == "b32" {
		v, err := strconv.ParseUint(s, 0, 32)
		if err != nil {
			return 0, fmt.Errorf("%q is not a valid %s", s, typ)
		}
		return v, nil
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a valid %s", s, typ)
	}
	return floatElement(typ, v), nil
}

func floatElement(typ string, v float64) uint64 {
	switch typ {
	case "f64":
		return math.Float64bits(v)
	case "f16":
		return uint64(op.F16FromFloat32(float32(v)))
	case "bf16":
		return uint64(op.BF16FromFloat32(float32(v)))
	}
	return uint64(math.Float32bits(float32(v)))
}

// value returns the number in the Go type that the emulator and the driver expect.
func (a *argument) value() any {
	if elementSizes[a.typ] == 8 {
		return a.number
	}
	return uint32(a.number)
}

// element returns the text of element i of the bytes of an array.
func (a *argument) element(b []byte, i int) string {
	size := elementSizes[a.typ]
	var w [8]byte
	copy(w[:], b[i*size:(i+1)*size])
	v := binary.LittleEndian.Uint64(w[:])
	switch a.typ {
	case "f64":
		return fmt.Sprintf("%.6g", math.Float64frombits(v))
	case "f32":
		return fmt.Sprintf("%.6g", math.Float32frombits(uint32(v)))
	case "f16":
		return fmt.Sprintf("%.4g", op.F16ToFloat32(uint16(v)))
	case "bf16":
		return fmt.Sprintf("%.3g", op.BF16ToFloat32(uint16(v)))
	case "s64":
		return fmt.Sprint(int64(v))
	case "s32":
		return fmt.Sprint(int32(v))
	case "s16":
		return fmt.Sprint(int16(v))
	case "s8":
		return fmt.Sprint(int8(v))
	case "b32":
		return fmt.Sprintf("%#08x", v)
	}
	return fmt.Sprint(v)
}
