package batch

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// fileRange is the rest of a regular file, which lanes read at the same time: each one claims the next chunk while it
// has the turn, and reads its bytes afterwards.
type fileRange struct {
	f        *os.File
	at, left int64 // the next byte, and the number of bytes from there to the end
}

// openRange returns the rest of the file that r is, or nil if r is not a regular file. Another type may embed a file and
// deliver other bytes.
func openRange(r io.Reader) *fileRange {
	f, ok := r.(*os.File)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil || at >= info.Size() {
		return nil
	}
	var last [1]byte
	if n, _ := f.ReadAt(last[:], info.Size()-1); n == 0 { // some file systems, such as sysfs, state a larger size
		return nil
	}
	return &fileRange{f, at, info.Size() - at}
}

// claim passes on a chunk with the next bytes of the file, which the lane has yet to read. If less than a chunk is left,
// it leaves the file and returns nil: the rest is read in turn, to its end. It also returns nil if the stream must end.
func (s *source) claim() (*chunk, error) {
	to := s.r.space()
	if to == nil {
		return nil, nil
	}
	n := int64(len(to))
	if n > s.file.left {
		return nil, s.leaveFile()
	}
	c := s.r.cur
	c.from = s.file.at
	s.file.at, s.file.left = s.file.at+n, s.file.left-n
	if s.r.advance(len(to)); s.r.cur != nil { // there is no memory for the results
		return nil, nil
	}
	return c, nil
}

// leaveFile sets the position of the file after the claimed bytes.
func (s *source) leaveFile() error {
	if s.file == nil {
		return nil
	}
	_, err := s.file.f.Seek(s.file.at, io.SeekStart)
	s.file = nil
	if err != nil {
		return fmt.Errorf("pipeline: read: %w", err)
	}
	return nil
}

// fill reads the bytes of a claimed chunk.
func (s *source) fill(c *chunk) error {
	if c.from < 0 {
		return nil
	}
	n, err := s.from.(*os.File).ReadAt(c.in, c.from)
	switch {
	case n == len(c.in):
		return nil
	case errors.Is(err, io.EOF):
		return fmt.Errorf("pipeline: the file ended at byte %d while it was read, and had more bytes before: %w", c.from+int64(n), io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("pipeline: read: %w", err)
}
