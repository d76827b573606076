/* SPDX-License-Identifier: MIT */
/* labels.h - every label of the barrier ledger: the order of one side | the order of the other side. */
#ifndef QUIESCE_LABELS_H
#define QUIESCE_LABELS_H

#define QUIESCE_LABELS(X)                                                     \
	X(RU1) /* reader word set, then its reads | unlink, then the scan */  \
	X(RU2) /* last access, then the word cleared | scan, then free */     \
	X(RU3) /* initialise, then publish | fetch, then use */               \
	X(RU5) /* grace period complete | poll returns true */                \
	X(RU6) /* cookie taken | grace period begins */                       \
	X(RU7) /* notify flag set, then reader word read | word cleared, flag taken */ \
	X(RU8) /* section without registry entry counted | updater's count */ \
	X(RU9) /* unlink, then a number taken | a newer one taken, then its fence */ \
	X(RG1) /* registry entry published | scanner follows it */            \
	X(RG2) /* number of registry entries grows | scanner reads it */      \
	X(RG3) /* step set, then its entries followed | entry cleared, then scanners' steps read */ \
	X(QS1) /* word set, then later accesses | unlink, then the number and the words read */ \
	X(QS2) /* last access, then the word | word read, then free */         \
	X(QS3) /* number raised, then words read, then completed | unlink, then the number, then completed read */ \
	X(QS4) /* word set, then waiting read | waiting set, then the word read */ \
	X(GP1) /* completed, led; then waiting read | waiting, then completed, led read */ \
	X(GP2) /* stores of one leader | loads of the next */                 \
	X(HF1) /* caller's stores, then a shared heavy fence | that fence complete */ \
	X(SH1) /* slot set, then the object found | unlink, then slots read */ \
	X(SH2) /* last access, then slot cleared | slot read, then free */    \
	X(SH3) /* initialise, then publish | fetch again, then use */         \
	X(SH4) /* a line of slots left, then free | taken, then claimed in */  \
	X(SH5) /* the wait is over | the waiter returns */                    \
	X(SH6) /* lines counted, then a slot claimed | fence, lines counted */ \
	X(SH7) /* asleep set, then slots read | slot cleared, asleep taken */ \
	X(SH8) /* fallback guard counted | fence, counts read */             \
	X(SH9) /* line live, then claimed in | fence, live read */ \
	X(HP1) /* slot set, then the pointer loaded again | unlink, then slots read */ \
	X(HP2) /* object queued | a sweeper reads other threads' queues */    \
	X(HP3) /* object pushed to a list | list taken */                     \
	X(HP4) /* object queued, then limit read | limit 0, then queued read */ \
	X(HP5) /* objects left, then scheduled read | scheduled stored, then objects left checked */ \
	X(HP6) /* object queued, then its lock read | lock released, then queued read */ \
	X(CP1) /* used through a reference, then put | the last put, then retired */ \
	X(PC1) /* counters made | base read, then counted there */            \
	X(PC2) /* last access, then leave counted | leaves summed, then entries */ \
	X(HL1) /* asleep set, then wake_wanted read | wake_wanted set, then asleep taken */ \
	X(RS1) /* updates, then idle | idle seen, then the fast path */       \
	X(PW1) /* reader counted, then block read | not open or block set, then counts read */ \
	X(PW2) /* stores of a writer, then open | open read, then inside */   \
	X(PW3) /* lock granted, or block cleared | seen by a reader that enters */ \
	X(SR1) /* reader counted, then its accesses | unlink, then counts read */ \
	X(SR2) /* wake request stored, then counts read | leave counted, then the helper woken */ \
	X(WQ1) /* left counted, then the word read | word made odd, then counts read */ \
	X(SR3) /* grace period of a domain complete | poll returns true */    \
	X(SR4) /* cookie taken | grace period of the domain begins */         \
	X(SR5) /* wait for a domain over | the waiter returns */              \
	X(SR6) /* domain reinitialised after a fork | used */                  \
	X(SR7) /* object pushed to a domain | its list taken */               \
	X(SR8) /* callbacks of a domain have run | srcu_barrier returns */    \
	X(SR9) /* a section left, then a load | the caller's */               \
	X(PR1) /* mode of a reference count | checked and counted, in one sequence */ \
	X(PR2) /* used through a reference, then put | the last put, then release */ \
	X(PR3) /* one change of mode of a reference count | the next */       \
	X(LK1) /* lock released | lock taken */                               \
	X(CB1) /* retired object queued | worker's snapshot */                \
	X(CB2) /* grace period over, then ready | ready, then freed */        \
	X(CB3) /* queued, then listed read | unlisted, then queued read */     \
	X(CB4) /* callbacks have run | rcu_barrier returns */                 \
	X(CB5) /* object pushed to a list for want of memory | list taken */  \
	X(CB6) /* queue listed | list taken */                                \
	X(CB7) /* rcu_barrier requests a pass | pass begins */                \
	X(CB8) /* work queued, then is a pass running | pass over, then is work queued */ \
	X(CB9) /* queue listed, then is the worker asleep | asleep, then is any queue listed */ \
	X(GB1) /* bytes queued or reclaimed, then their share | the share, then the bytes again */ \
	X(FK1) /* gate closed, then running read | running set, then closed read */ \
	X(LI1) /* entry of a list written, then linked | link followed, then read */ \
	X(ID1) /* node or object initialised, then its slot; removed, then the slot | slot, then used */ \
	X(ID2) /* tree made, then the root | root, then the tree */             \
	X(ID3) /* accesses before a mark, then the mark, from above | mark, then later accesses */ \
	X(UW1) /* inlined: ctr set, then its reads | unlink, then ctrs read */ \
	X(UW2) /* inlined: accesses, then ctr | ctr read, then completed, then free */ \
	X(UW3) /* cookie of an inlined domain | its grace period begins */    \
	X(UW4) /* inlined: ctr cleared, then futex read | futex set, then ctrs read */ \
	X(DF1) /* deferred, then is a waiter asking | no waiter asks, then is anything deferred */ \
	X(WF1) /* node filled in, then linked | followed, then read */ \
	X(WF2) /* a link cleared, then the tail exchanged | exchanged, then the link written */ \
	X(LQ1) /* node filled in, then linked | followed, then read */ \
	X(LQ2) /* linked, then the tail | tail read, then the link there */ \
	X(LQ3) /* tail and dummy passed, then the head | head read, then the link there */ \
	X(BK1) /* bucket written, then unlocked or moved | read, or locked */ \
	X(BK2) /* array filled in, then made the next | the next one used */  \
	X(BK3) /* all buckets moved, then the next array is the table's | fetch it, then use it */ \
	X(BK4) /* a bucket moved, then counted as moved | all counted, then the next array is the table's */ \
	X(BK5) /* a line zeroed, then on the array's list | freed */          \
	X(BK6) /* the callback of a resize parked | an update requests it */  \
	X(BK7) /* no seed | one thread draws it */                            \
	X(BK8) /* counts made | found, then the array that goes with them is the table's */ \
	X(HT1) /* object filled in, then in the table | found, then used */   \
	X(HM1) /* key written, then counted | counted, then the keys read */  \
	X(HM2) /* counted, then the value | found, then the count read again */ \
	X(WS1) /* object pushed onto a stack | found on top of it, or taken */ \
	X(WS2) /* link stored, the last access of a push | link found, then the node given away */ \
	X(LS1) /* object and link written, then pushed | found on top, or taken */ \
	X(IN1) /* library initialised, or the survivor of a fork has come | used */ \
	X(FK2) /* child of a fork repaired | used */

#endif
