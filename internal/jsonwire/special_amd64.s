#include "textflag.h"

DATA quotes<>+0(SB)/8, $0x2222222222222222
DATA quotes<>+8(SB)/8, $0x2222222222222222
GLOBL quotes<>(SB), RODATA|NOPTR, $16
DATA slashes<>+0(SB)/8, $0x5c5c5c5c5c5c5c5c
DATA slashes<>+8(SB)/8, $0x5c5c5c5c5c5c5c5c
GLOBL slashes<>(SB), RODATA|NOPTR, $16
DATA controls<>+0(SB)/8, $0x1f1f1f1f1f1f1f1f
DATA controls<>+8(SB)/8, $0x1f1f1f1f1f1f1f1f
GLOBL controls<>(SB), RODATA|NOPTR, $16

// A byte is a control character when the lesser of it and 0x1f is itself.
#define SIXTEEN(off, at, quote, slash, bits) \
	MOVOU off(SI), at       \
	MOVO  at, quote         \
	MOVO  at, slash         \
	PCMPEQB X12, quote      \
	PCMPEQB X13, slash      \
	POR   slash, quote      \
	MOVO  at, slash         \
	PMINUB X14, slash       \
	PCMPEQB at, slash       \
	POR   slash, quote      \
	PMOVMSKB quote, bits

// func specials(b *[64]byte) uint64
TEXT ·specials(SB), NOSPLIT, $0-16
	MOVQ  b+0(FP), SI
	MOVOU quotes<>(SB), X12
	MOVOU slashes<>(SB), X13
	MOVOU controls<>(SB), X14
	SIXTEEN(0, X0, X1, X2, AX)
	SIXTEEN(16, X3, X4, X5, BX)
	SIXTEEN(32, X6, X7, X8, CX)
	SIXTEEN(48, X9, X10, X11, DX)
	SHLQ  $16, BX
	SHLQ  $32, CX
	SHLQ  $48, DX
	ORQ   BX, AX
	ORQ   DX, CX
	ORQ   CX, AX
	MOVQ  AX, ret+8(FP)
	RET
