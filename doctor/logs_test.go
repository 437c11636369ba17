package doctor_test

import (
	"github.com/outcrop-dev/outcrop/doctor/internal/logtest"
)

// The logs of the tests, and what they are verified with.
const (
	dshHeader = logtest.DSHHeader
	ownHeader = logtest.OwnHeader
)

var (
	plain     = logtest.Plain
	turn      = logtest.Turn
	user      = logtest.User
	assistant = logtest.Assistant
	result    = logtest.Result
	ended     = logtest.Ended
	note      = logtest.Note
	codes     = logtest.Codes
	verify    = logtest.Verify
	memory    = logtest.Memory
)
