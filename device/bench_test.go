package device_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/rayo-go/rayo/device"
)

func BenchmarkRelu(b *testing.B) {
	ctx := context.Background()
	dev, err := device.Open(ctx, device.Require(device.CPU), device.WithThreads(1))
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	for _, n := range []int{16, 100, 1000, 10000, 100000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			x, dst := device.Alloc(n), device.Alloc(n)
			b.SetBytes(int64(8 * n))
			b.ReportAllocs()
			for b.Loop() {
				if err := dev.Relu(ctx, dst, x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSum(b *testing.B) {
	ctx := context.Background()
	dev, err := device.Open(ctx, device.Require(device.CPU), device.WithThreads(1))
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	for _, n := range []int{16, 1000, 100000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			x := device.Alloc(n)
			b.SetBytes(int64(4 * n))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := dev.Sum(ctx, x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSoftmax(b *testing.B) {
	ctx := context.Background()
	dev, err := device.Open(ctx, device.Require(device.CPU), device.WithThreads(1))
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	x, dst := device.Alloc(1000), device.Alloc(1000)
	b.ReportAllocs()
	for b.Loop() {
		if err := dev.Softmax(ctx, dst, x, 1, 1000); err != nil {
			b.Fatal(err)
		}
	}
}
