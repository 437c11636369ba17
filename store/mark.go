package store

// Marked is a Following that can be gone on with later, by another process.
type Marked interface {
	Following
	// Mark names the place behind what Next has yielded to its end. It is short
	// text, for Resume alone; "" when there is none.
	Mark() string
	// Resume goes on behind a mark, before the first Next. It reports whether
	// the log still has there what it had; when not, Next begins at the
	// beginning.
	Resume(mark string) bool
}
