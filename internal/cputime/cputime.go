// Package cputime is a clock for benchmarks on machines that others use too: it
// counts what the processors did for this process, and not what they did for
// somebody else in the meantime.
package cputime
