package collection

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"os"
	"path/filepath"
	"unsafe"

	"github.com/outcrop-dev/outcrop/internal/faultfs"
)

// The file of a catalogue is the line magic, the CRC-32C of what follows in
// four bytes, the store's address, the number of records and the records in the
// order of the store's listing, each a text; numbers are varints, texts a length
// and their bytes.
const magic = "outcrop catalogue 2\n"

// mostCatalogue is the largest file that is read.
const mostCatalogue = 1 << 30

// leastRecord is less than the bytes of any record.
const leastRecord = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// load reads the catalogue. Whatever is wrong with it, it begins anew then.
func (c *Collection) load() {
	if c.loaded {
		return
	}
	c.loaded = true
	c.known = map[string]*record{}
	if c.opt.State == "" {
		return
	}
	if fi, err := c.opt.Disk.Stat(c.CatalogueFile()); err != nil || !fi.Mode().IsRegular() || fi.Size() > mostCatalogue {
		return
	}
	b, err := faultfs.ReadFile(c.opt.Disk, c.CatalogueFile())
	if err != nil {
		return
	}
	recs, ok := decode(b, c.st.Address())
	if !ok {
		return
	}
	c.known = make(map[string]*record, len(recs))
	for i := range recs {
		c.known[recs[i].place] = &recs[i]
	}
}

// Save writes the catalogue when something changed. An error costs reading the
// next time, and nothing else.
func (c *Collection) Save(random func([]byte) (int, error)) error {
	if !c.dirty || c.opt.State == "" {
		return nil
	}
	path := c.CatalogueFile()
	if _, err := faultfs.MakeFolders(c.opt.Disk, filepath.Dir(path)); err != nil {
		return err
	}
	var id [6]byte
	if _, err := random(id[:]); err != nil {
		return err
	}
	temp := path + "." + hex.EncodeToString(id[:]) + ".tmp"
	f, err := c.opt.Disk.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(encode(c.order, c.st.Address()))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = c.opt.Disk.Rename(temp, path)
	}
	if err != nil {
		c.opt.Disk.Remove(temp)
		return err
	}
	c.dirty = false
	return nil
}

type encoder struct{ b []byte }

func (e *encoder) int(n int64)   { e.b = binary.AppendVarint(e.b, n) }
func (e *encoder) text(s string) { e.int(int64(len(s))); e.b = append(e.b, s...) }
func (e *encoder) flag(v bool)   { e.b = append(e.b, map[bool]byte{true: 1}[v]) }
func (e *encoder) texts(l []string) {
	e.int(int64(len(l)))
	for _, s := range l {
		e.text(s)
	}
}

func (e *encoder) optText(s *string) {
	e.flag(s != nil)
	if s != nil {
		e.text(*s)
	}
}

func encode(recs []*record, address string) []byte {
	e := &encoder{b: append(make([]byte, 0, 256*len(recs)+64), magic+"\x00\x00\x00\x00"...)}
	e.text(address)
	e.int(int64(len(recs)))
	for _, r := range recs {
		r.appendTo(e)
	}
	binary.LittleEndian.PutUint32(e.b[len(magic):], crc32.Checksum(e.b[len(magic)+4:], castagnoli))
	return e.b
}

// decoder reads what encode made; texts are parts of one string. After a fault
// everything is zero.
type decoder struct {
	s   string
	bad bool
}

func (d *decoder) int() int64 {
	if d.s != "" && d.s[0] < 0x80 {
		n := int64(d.s[0]>>1) ^ -int64(d.s[0]&1)
		d.s = d.s[1:]
		return n
	}
	// Varints of the file are short: a fixed copy avoids one of the rest.
	var b [binary.MaxVarintLen64]byte
	n, used := binary.Varint(b[:copy(b[:], d.s)])
	if used <= 0 {
		d.bad, d.s = true, ""
		return 0
	}
	d.s = d.s[used:]
	return n
}

func (d *decoder) text() string {
	n := d.int()
	if n < 0 || n > int64(len(d.s)) {
		d.bad, d.s = true, ""
		return ""
	}
	t := d.s[:n]
	d.s = d.s[n:]
	return t
}

func (d *decoder) flag() bool {
	if d.s == "" {
		d.bad = true
		return false
	}
	v := d.s[0] == 1
	d.s = d.s[1:]
	return v
}

func (d *decoder) optText() *string {
	if !d.flag() {
		return nil
	}
	t := d.text()
	return &t
}

func (d *decoder) texts() []string {
	n := d.int()
	if n <= 0 || n > int64(len(d.s)) {
		d.bad = d.bad || n != 0
		return []string{}
	}
	out := make([]string, n)
	for i := range out {
		out[i] = d.text()
	}
	return out
}

// decode takes the bytes over.
func decode(b []byte, address string) ([]record, bool) {
	head := len(magic) + 4
	if len(b) < head || !bytes.HasPrefix(b, []byte(magic)) || binary.LittleEndian.Uint32(b[len(magic):]) != crc32.Checksum(b[head:], castagnoli) {
		return nil, false
	}
	// Nobody else has the bytes, so texts may stay where they are.
	d := &decoder{s: unsafe.String(unsafe.SliceData(b[head:]), len(b)-head)}
	if d.text() != address {
		return nil, false
	}
	n := d.int()
	if n < 0 || n > int64(len(d.s)/leastRecord) {
		return nil, false
	}
	recs := make([]record, n)
	for i := range recs {
		if d.record(&recs[i]); d.bad {
			return nil, false
		}
	}
	return recs, d.s == ""
}
