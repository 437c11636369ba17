package store

// ReadOnly is a store of another program that nothing can be written to. Its
// sessions go on in another store, see GoOn.
type ReadOnly interface {
	Store
	// ReadOnly says to people what the store is: "a store of DeepSeek Harness".
	ReadOnly() string
}

// OnlyRead says what a store is to which nothing can be written; ok is false for
// every other store.
func OnlyRead(st Store) (what string, ok bool) {
	r, ok := st.(ReadOnly)
	if !ok {
		return "", false
	}
	return r.ReadOnly(), true
}
