package worker

import (
	"testing"

	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

func TestCourierOfAProcess(t *testing.T) {
	storetest.RunCourier(t, func(*testing.T) (a, b store.Courier) {
		c := &local{answers: map[string]*answerer{}}
		return c, c
	})
}
