package webgpu

import "context"

// alignUp returns the bytes that n bytes take up in a stage, so that each part
// begins on a line of the cache.
func alignUp(n int64) int64 { return (n + 63) &^ 63 }

// maxAhead is the number of stages that one submission may use in each direction: if it needs more,
// it waits for the first of them.
const maxAhead = 16

// span is a transfer: bytes of the host, and their place on the device.
type span struct {
	host []byte
	m    *memory
	off  int64
}

// upload copies bytes to the device, stage by stage.
type upload struct {
	list  []span
	at    int64 // within the first of list
	left  int64
	stage *stage
	noted int // number of stages for which note was called
}

func newUpload(list []span) upload { return upload{list: list, left: aligned(list)} }

// aligned returns the number of bytes that spans occupy in stages.
func aligned(list []span) (n int64) {
	for i := range list {
		n += alignUp(int64(len(list[i].host)))
	}
	return n
}

// fill copies as much as fits to a stage.
func (u *upload) fill(ctx context.Context, w *work) (err error) {
	if u.left == 0 {
		return nil
	}
	d := w.d
	if len(w.ups) < maxAhead {
		u.stage, err = d.stage(min(u.left, chunkBytes), Upload)
	} else {
		// The first stage has been submitted: try again.
		first := w.ups[0]
		if err = d.until(ctx, first.serial); err == nil {
			u.stage = first.stage
			w.ups = append(w.ups[:0], w.ups[1:]...)
			u.noted--
		}
	}
	if err != nil {
		return err
	}
	w.ups = append(w.ups, sent{stage: u.stage})
	mapped := u.stage.host.Mapped()
	if mapped == nil {
		return errNotMapped
	}
	room := mapped[:min(int64(len(mapped)), chunkBytes)&^63]
	at := int64(0)
	for len(u.list) > 0 && at < int64(len(room)) {
		t := &u.list[0]
		n := min(int64(len(t.host))-u.at, int64(len(room))-at)
		if n > 0 {
			padded := (n + 3) &^ 3
			d.copies(room[at:at+n], t.host[u.at:u.at+n])
			clear(room[at+n : at+padded])
			w.copies = append(w.copies, HostCommand{Do: Copy, Src: u.stage.host, Dst: t.m.host, From: at, To: t.off + u.at, Bytes: padded})
			d.stats.uploaded.Add(uint64(n))
		}
		at += alignUp(n)
		u.left -= alignUp(n)
		if u.at += n; u.at == int64(len(t.host)) {
			u.list, u.at = u.list[1:], 0
		}
	}
	u.stage.host.Unmap()
	return nil
}

// write copies bytes to a Remote, without stages. The caller holds the lock of the queue.
func (w *work) write() error {
	for _, t := range w.in {
		whole := len(t.host) &^ 3
		if whole > 0 {
			if err := w.d.remote.Write(t.m.host, t.off, t.host[:whole]); err != nil {
				return w.d.hosted(err)
			}
		}
		if whole < len(t.host) {
			var last [4]byte
			copy(last[:], t.host[whole:])
			if err := w.d.remote.Write(t.m.host, t.off+int64(whole), last[:]); err != nil {
				return w.d.hosted(err)
			}
		}
		w.d.stats.uploaded.Add(uint64(len(t.host)))
	}
	return nil
}

// put appends the copies from the stage.
func (u *upload) put(q *queue, w *work) {
	if u.stage == nil {
		return
	}
	q.commands = append(q.commands, w.copies...)
	q.remap = append(q.remap, u.stage.host)
	w.copies = w.copies[:0]
	u.stage = nil
}

// sent submits a stage that is not the last.
func (u *upload) sent(q *queue, w *work) error {
	err := q.submit(w)
	u.note(w)
	return err
}

// note records the submission in which stages are used.
func (u *upload) note(w *work) {
	for ; u.noted < len(w.ups); u.noted++ {
		w.ups[u.noted].serial = w.serial
	}
}

// download copies bytes from the device, stage by stage.
type download struct {
	list []span
	at   int64 // within the first of list
	left int64
}

func newDownload(list []span) download { return download{list: list, left: aligned(list)} }

// reserve gets a stage for the next transfer, if there is one.
func (o *download) reserve(w *work) error {
	stamps := int64(0)
	if w.stamps != nil && len(w.downs) == 0 {
		stamps = alignUp(8 * int64(w.stamped))
	}
	if o.left+stamps == 0 {
		return nil
	}
	s, err := w.d.stage(min(o.left+stamps, chunkBytes), Readback)
	if err != nil {
		return err
	}
	w.downs = append(w.downs, sent{stage: s, first: len(w.parts), used: stamps})
	return nil
}

// put appends copies to the stage, as many as fit.
func (o *download) put(q *queue, w *work) {
	if len(w.downs) == 0 {
		return
	}
	down := &w.downs[len(w.downs)-1]
	q.remap = append(q.remap, down.stage.host)
	room := min(down.stage.size, chunkBytes) &^ 63
	at := down.used
	for len(o.list) > 0 && at < room {
		t := &o.list[0]
		n := min(int64(len(t.host))-o.at, room-at)
		if n > 0 {
			q.commands = append(q.commands, HostCommand{Do: Copy, Src: t.m.host, Dst: down.stage.host, From: t.off + o.at, To: at, Bytes: (n + 3) &^ 3})
			w.parts = append(w.parts, part{t.host[o.at : o.at+n], at})
		}
		at += alignUp(n)
		o.left -= alignUp(n)
		if o.at += n; o.at == int64(len(t.host)) {
			o.list, o.at = o.list[1:], 0
		}
	}
	down.last = len(w.parts)
}
