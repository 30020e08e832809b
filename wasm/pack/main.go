// Command pack makes programs of Go for js/wasm smaller, after compression by 7%:
//
//	GOOS=js GOARCH=wasm go build -trimpath -ldflags='-s -w' -o page.wasm .
//	go run github.com/rayo-go/rayo/wasm/pack page.wasm
//
// The linker of Go leaves out runs of eight zeros and more, so that it divides the data of a program into ten thousands
// of segments, most of them with two or three bytes of a table of the runtime. Their headers compress worse than the
// zeros. Pack joins segments that are near each other. The memory of the program does not change.
package main

import (
	"fmt"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("pack: ")
	if len(os.Args) < 2 {
		log.Fatal("name the files to pack")
	}
	for _, name := range os.Args[1:] {
		if err := rewrite(name); err != nil {
			log.Fatal(err)
		}
	}
}

// rewrite packs a file.
func rewrite(name string) error {
	program, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	packed, err := pack(program)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if err := os.WriteFile(name+".packed", packed, info.Mode()); err != nil {
		return err
	}
	return os.Rename(name+".packed", name)
}
