package doctor

// Doubtful has each file read by dsh's rules, sound or not.
func (o Options) Doubtful() Options {
	o.doubt = true
	return o
}
