package emu

import (
	"errors"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/ptx"
)

// shareSums is a kernel with clusters of four blocks. Each block sends a number of each of its threads to the other
// blocks: 100 times the index of the block in the grid, plus the index of the thread.
func shareSums(k *ptx.Kernel) {
	k.Block(64, 1, 1)
	k.Cluster(4, 1, 1)
	y := ptx.GlobalParam[ptx.U32](k, "y")
	all := ptx.SharedArray[ptx.U32](k, "all", 4*64)
	k.ClusterArriveRelaxed()
	tid, rank := k.Special(ptx.TidX), k.Special(ptx.ClusterRank)
	mine := k.Special(ptx.CtaidX).Mul(ptx.U(100)).Add(tid)
	k.ClusterWait()
	for to := range 4 {
		ptx.MapShared(all, ptx.N(to)).At(rank.Mul(ptx.U(64)).Add(tid)).Store(mine)
	}
	k.ClusterSync()
	sum := ptx.U(0)
	for from := range 4 {
		sum = sum.Add(all.At(tid.Xor(ptx.U(63))).Offset(64 * from).Load())
	}
	y.At(k.Special(ptx.CtaidX).MulAdd(ptx.U(64), tid)).Store(sum)
}

func TestClusters(t *testing.T) {
	k := buildFor(t, ptx.SM90, shareSums)
	for _, order := range []Schedule{Ascending, Descending, Shuffled} {
		d := newDevice(t, Config{Schedule: order, Seed: 5})
		const blocks = 24
		y := d.empty("y", 4*64*blocks)
		if err := d.Launch(background, k, Dim{X: blocks}, Dim{X: 64}, 0, y); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 4*64*blocks)
		if err := d.Read(y, got); err != nil {
			t.Fatal(err)
		}
		for i := range 64 * blocks {
			first := i / 256 * 4
			want := uint64(100*(4*first+6) + 4*(i%64^63))
			if v := load(got[4*i:], 4); v != want {
				t.Fatalf("element %d is %d, not %d", i, v, want)
			}
		}
	}
}

// TestClusterMutants removes or weakens the cluster barriers, each in turn.
func TestClusterMutants(t *testing.T) {
	m := ptx.NewModule(ptx.SM90)
	m.Kernel("k", shareSums)
	text, err := m.PTX()
	if err != nil {
		t.Fatal(err)
	}
	const arrive, wait = "barrier.cluster.arrive.release.aligned;", "barrier.cluster.wait.acquire.aligned;"
	const first = "barrier.cluster.arrive.relaxed.aligned;"
	for _, c := range []struct {
		name string
		text string
		want error
	}{
		{"first wait", strings.Replace(strings.Replace(text, wait, "", 1), first, "", 1), Race},
		{"second wait", strings.Replace(text, arrive+"\n\t"+wait, "", 1), Race},
		{"release", strings.Replace(text, arrive, first, 1), Race},
		{"arrival", strings.Replace(text, first, "", 1), BadOperand},
	} {
		if c.text == text {
			t.Errorf("%s: nothing to leave out", c.name)
			continue
		}
		parsed, err := Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		k, err := parsed.Kernel("k")
		if err != nil {
			t.Fatal(err)
		}
		d := newDevice(t, Config{Schedule: Shuffled})
		y := d.empty("y", 4*64*8)
		if err := d.Launch(background, k, Dim{X: 8}, Dim{X: 64}, 0, y); !errors.Is(err, c.want) {
			t.Errorf("without the %s: %v", c.name, err)
		}
	}
}
