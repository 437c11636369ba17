package exchange

// plainEndings are endings under which a file of any other name is shown to the
// formats, so that they judge it by what is in it.
var plainEndings = [...]string{".jsonl", ".json", ".jsonl.zst", ".jsonl.zstd"}

// claimNamed finds the format of a file that a person named: its name, which may
// have any ending, says less than its content. In folders endings count, so that
// not every file is a candidate.
func claimNamed(formats []Format, path string) (Source, bool, error) {
	src, ok, err := claim(formats, path)
	if ok || err != nil {
		return src, ok, err
	}
	for _, ending := range plainEndings {
		as := make([]Format, len(formats))
		for i, f := range formats {
			as[i] = f
			as[i].Claims = func(path string, head []byte) bool { return f.Claims(path+ending, head) }
		}
		if src, ok, err := claim(as, path); ok || err != nil {
			return src, ok, err
		}
	}
	return src, false, nil
}
