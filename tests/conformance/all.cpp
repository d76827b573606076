/* SPDX-License-Identifier: MIT */
/* all.cpp - the whole suite as one file, which compiles in a third of the time. */
#include "check.cpp"
#include "hp_base.cpp"
#include "hp_general.cpp"
#include "hp_holder.cpp"
#include "hp_holder_mem.cpp"
#include "hp_holder_nonmem.cpp"
#include "hp_syn.cpp"
#include "rcu_base.cpp"
#include "rcu_domain.cpp"
#include "rcu_domain_func.cpp"
#include "rcu_general.cpp"
#include "rcu_syn.cpp"
