package chat

// Spin is what turns in the last line while something is at work.
var Spin = spin
