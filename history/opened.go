package history

import "github.com/outcrop-dev/outcrop"

// AsOpened is a session that was read as it is stored, as opening it would
// leave it: what a crash left open is closed. It is for a dry run; nothing is
// written. The error is why the session would not be opened.
func AsOpened(s *outcrop.Session) (*outcrop.Session, error) {
	return outcrop.Restore(s.Header(), func(yield func(outcrop.Record, error) bool) {
		for r := range s.Log().Records(0) {
			if !yield(r, nil) {
				return
			}
		}
	}, outcrop.Options{})
}
