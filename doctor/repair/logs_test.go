package repair_test

import (
	"github.com/outcrop-dev/outcrop/doctor/internal/logtest"
)

// The logs of the tests, and what they are verified with.
const (
	dshHeader = logtest.DSHHeader
	ownHeader = logtest.OwnHeader
	endSeed4  = logtest.EndSeed
)

var (
	plain     = logtest.Plain
	turn      = logtest.Turn
	user      = logtest.User
	assistant = logtest.Assistant
	ended     = logtest.Ended
	note      = logtest.Note
	codes     = logtest.Codes
	verify    = logtest.Verify
	memory    = logtest.Memory
)
