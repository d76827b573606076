/* SPDX-License-Identifier: MIT */
/* labels.h - every label of the barrier ledger.  The comment at the head of a file states what its label orders, and
 * docs/ordering.md is made of these statements. */
#ifndef QUIESCE_LABELS_H
#define QUIESCE_LABELS_H

#define QUIESCE_LABELS(X) \
	X(RU1) X(RU2) X(RU3) X(RU5) X(RU6) X(RU7) X(RU8) X(RU9) X(RG1) X(RG2) X(RG3) X(QS1) X(QS2) X(QS3) X(QS4) \
	X(GP1) X(GP2) X(HF1) X(SH1) X(SH2) X(SH3) X(SH4) X(SH5) X(SH6) X(SH7) X(SH8) X(SH9) \
	X(HP1) X(HP2) X(HP3) X(HP4) X(HP5) X(HP6) X(HP7) X(CP1) X(PC1) X(PC2) X(PC3) X(HL1) X(RS1) X(PW1) X(PW2) X(PW3) X(SR1) X(SR2) \
	X(SB1) X(WQ1) X(SR3) X(SR4) X(SR5) X(SR6) X(SR7) X(SR8) X(SR9) X(SL1) X(SL2) X(PR1) X(PR2) X(PR3) X(LK1) \
	X(CB1) X(CB2) X(CB3) X(CB4) X(CB5) X(CB6) X(CB7) X(CB8) X(CB9) X(GB1) X(OF1) X(OF2) X(OF3) X(FK1) X(LI1) X(ID1) X(ID2) X(ID3) \
	X(UW1) X(UW2) X(UW3) X(UW4) X(DF1) X(WF1) X(WF2) X(LQ1) X(LQ2) X(LQ3) X(VQ1) X(VQ2) X(VQ3) X(VQ4) X(VQ5) \
	X(BK1) X(BK2) X(BK3) X(BK4) X(BK5) X(BK6) X(BK7) X(BK8) X(BK9) X(HT1) X(HM1) X(HM2) X(WS1) X(WS2) X(LS1) X(IN1) X(FK2)

#endif
