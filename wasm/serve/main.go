// Command serve serves a folder of static files for pages with WebAssembly: with the right
// content types, compressed, and with a content security policy. make site builds the folder
// that it serves by default:
//
//	make site && go run ./wasm/serve
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
)

func main() {
	log.SetFlags(0)
	addr := flag.String("addr", "127.0.0.1:8080", "where to listen")
	dir := flag.String("dir", "dist/site", "the folder to serve")
	isolate := flag.Bool("isolate", false, "send the headers COOP and COEP, with which pages may share memory with Workers and have finer clocks")
	flag.Parse()
	if _, err := os.Stat(*dir); err != nil {
		log.Fatalf("serve: %v: build the folder with make site", err)
	}
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/\n", l.Addr())
	log.Fatal(http.Serve(l, Handler(*dir, *isolate)))
}
