// Package wire is the codec of log files: their bytes on one side, headers and
// records on the other. It writes session format version 0, reads it and dsh's
// later formats 1 to 4, and can write a log in format 3. It opens, locks and syncs
// nothing; a store does.
//
// # Text
//
// A log is UTF-8 text, one JSON object a line, every line ended by "\n":
//
//	{"type":"session","version":0,"id":…,"createdAt":…,…}              header
//	{"type":"turn/start","seq":0,"time":…,"data":{"turn":1}}            event 0
//	{"type":"text-chunks","seq0":1,"time0":…,"data":{…,"texts":[…]}}    events 1 to 9
//	{"type":"step/end","seq":10,"time":…,"data":{…}}                    event 10
//
// The seq of a record is the number of events before it. A line whose type is
// text-chunks, reasoning-chunks or tool-call-chunks is a packed row, a run of
// chunk deltas that differ in text and time only.
//
// # Encodings
//
// Plain (.jsonl) is that text. Zstd (.jsonl.zstd) is the same text in
// independent frames that follow each other without anything between them:
//
//	┌───────────────────┬───────────────────┬───────────────────┬──
//	│ frame 1           │ frame 2           │ frame 3           │ …
//	│ the header line   │ first batch       │ second batch      │
//	└───────────────────┴───────────────────┴───────────────────┴──
//
//	frame:       28 B5 2F FD   descriptor  window?  dict id?  size?   block…  checksum?
//	block:       3 bytes, little endian: last (1 bit), type (2), size (21); then the payload
//
// A frame has no length in front; its end is found by walking its blocks.
// Borders come from headers alone, so the magic inside a block means nothing. A
// line may begin in one frame and end in a later one. What a frame holds counts
// only when its checksum fits; frames without checksum are read, never written.
//
// # Tails
//
// The first damage is the first byte from which on the file cannot be read as
// above: a line that is not one JSON object or a bad packed row, a seq gap, a
// last line without newline, a torn frame, a frame that fails its checksum or
// cannot be decoded, zero bytes. If no decodable turn/end line that ends in a
// newline lies at or after it, nothing that was finished is lost: the rest is a
// torn tail, reading ends quietly before it, and Tail says where the file is to
// be cut. Otherwise the log is damaged: the good prefix is read, then an error
// that wraps outcrop.ErrDamaged. After a bad or torn frame later frames are
// looked for by their magic, only to decide this, and only frames that pass
// their checksum count.
//
// A zstd file can be cut at frame borders only. So events of the frame in which
// the damage lies, and whole lines that could be saved from a torn frame, are
// read like all others and counted in Tail.Recovered: whoever cuts the file
// writes them again.
//
// # Odd content
//
// Blank lines and "\r\n" are read over and kept in place (a warning). Duplicate
// names and invalid UTF-8 are read, the last name wins, the bytes stay
// (warnings after CheckContent). A line over 256 MiB or nested deeper than
// 10,000 levels gives an error with code RECORD_TOO_BIG and its offset, and
// reading goes on after it. Shapes that dsh wrote before its first release are
// read through an upgraded view; the bytes stay.
//
// # Later formats
//
// Files of formats 1 to 4 have the same lines, frames and tails, without packed
// rows from format 2 on, and other events. Reader gives the events of format 0
// that they say, see package formats; places, damage and tails are those of the
// file. Nothing is appended to such a file.
//
// # Codes
//
//	FILE_EMPTY FILE_KIND FILE_NO_HEADER HEADER_…      no session in the file
//	LINE_NOT_JSON LINE_NO_NEWLINE SEQ_GAP ROW_…       damage in the text
//	FRAME_MAGIC FRAME_DESCRIPTOR FRAME_BLOCK FRAME_TORN
//	FRAME_CHECKSUM FRAME_WINDOW FRAME_DECODE FRAME_HEADER  damage in frames
//	RECORD_TOO_BIG                                    a record beyond the limits
//	LEGACY_TURN_START LEGACY_TURN_END LEGACY_STEERING half an old shape
//	FORMAT_…                                          a record that a later format cannot hold
//	TYPE_RESERVED DATA_MISSING                        an event that is not written
package wire

import (
	"strings"

	"github.com/outcrop-dev/outcrop"
)

// Encoding says how the text of a log is stored. Its value is the ending of
// the file's name without the first dot.
type Encoding string

const (
	Plain Encoding = "jsonl"
	Zstd  Encoding = "jsonl.zstd"
)

// EncodingOf tells the encoding by the ending of a path.
func EncodingOf(path string) (Encoding, bool) {
	switch {
	case strings.HasSuffix(path, "."+string(Zstd)):
		return Zstd, true
	case strings.HasSuffix(path, "."+string(Plain)):
		return Plain, true
	}
	return "", false
}

// Limits of what is read.
const (
	// MaxLine is the longest line, in bytes without its newline.
	MaxLine = outcrop.MaxRecord
	// MaxHeader is the longest header line.
	MaxHeader = 16 << 20
	// MaxWindow is the largest zstd window that a frame may ask for.
	MaxWindow = 128 << 20

	// block is how much of a file is read at once, and the size of an arena.
	block = 1 << 20
	// maxFrameText is how much text of one frame is held before its checksum
	// is known. A frame that may hold more is decoded twice.
	maxFrameText = 32 << 20
	// maxFrameBytes is the largest frame that is read into memory whole.
	maxFrameBytes = 32 << 20
)

// Pos is a place in a log file.
type Pos struct {
	Line       int   // 1 is the header line
	Offset     int64 // bytes from the start of the file; Zstd: the start of the frame in which the line begins
	TextOffset int64 // bytes from the start of the text
}

// damage makes the reason of a damage or a torn tail.
func damage(code outcrop.Code, msg string) *outcrop.Error {
	return &outcrop.Error{Op: "read", Code: code, Seq: -1, Offset: -1, Err: outcrop.ErrDamaged, Msg: msg}
}
