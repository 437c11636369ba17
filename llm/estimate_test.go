package llm

import "testing"

func TestOutputLimit(t *testing.T) {
	tests := []struct {
		name               string
		window, used, want int64
	}{
		{"an unknown window limits nothing", 0, 500, 0},
		{"a large window keeps a fiftieth back", 200_000, 100_000, 96_000},
		{"a small window keeps 1,024 back", 8000, 3000, 3976},
		{"what is left is never less than the margin", 8000, 7500, 1024},
		{"a window that is full leaves the margin, for the server to judge", 200_000, 250_000, 4000},
	}
	for _, tt := range tests {
		if got := OutputLimit(tt.window, tt.used); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}
