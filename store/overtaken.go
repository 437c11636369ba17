package store

import "context"

// Overtaker is a store in which a later log of a session may lie beside the one
// that is read, such as one of a format that this program does not know.
type Overtaker interface {
	Store
	// Overtaken is nil when what Read gives of a session is all of it that is
	// stored. Else the error says which log is later, and why it is not the one
	// that is read: Path is that log, the code NEWER_GENERATION or LATER_FORMAT.
	// It reads no log; a session that cannot be found is not overtaken.
	Overtaken(ctx context.Context, id string) error
}

// Overtaken says why a session is older than what is stored of it, nil when it
// is not. Who shows such a session says so; who would go on from it leaves that
// to a person, since what came later would be missing.
func Overtaken(ctx context.Context, st Store, id string) error {
	o, ok := st.(Overtaker)
	if !ok {
		return nil
	}
	return o.Overtaken(ctx, id)
}
