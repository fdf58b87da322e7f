"""All planted bugs (bug.py), in the order in which they are tried."""

import bugs_buffered
import bugs_calls
import bugs_cceh
import bugs_cceh_buffers
import bugs_converted
import bugs_elf
import bugs_elf_table
import bugs_elimda
import bugs_fastfair
import bugs_fastfair_buffers
import bugs_nbtree
import bugs_pool
import bugs_resume
import bugs_scans
import bugs_schedules
import bugs_schedules_elimda
import bugs_schedules_sptree
import bugs_skiplist
import bugs_skiplist_buffers
import bugs_sptree
import bugs_storm
import bugs_strings
import bugs_tips
import bugs_tips_of
import bugs_tips_waiting
import bugs_wal

BUGS = (
    bugs_sptree.BUGS
    + bugs_resume.BUGS
    + bugs_pool.BUGS
    + bugs_wal.BUGS
    + bugs_fastfair.BUGS
    + bugs_buffered.BUGS
    + bugs_fastfair_buffers.BUGS
    + bugs_cceh.BUGS
    + bugs_cceh_buffers.BUGS
    + bugs_skiplist.BUGS
    + bugs_skiplist_buffers.BUGS
    + bugs_nbtree.BUGS
    + bugs_elf_table.BUGS
    + bugs_elimda.BUGS
    + bugs_tips.BUGS
    + bugs_tips_of.BUGS
    + bugs_converted.BUGS
    + bugs_tips_waiting.BUGS
    + bugs_schedules.BUGS
    + bugs_schedules_elimda.BUGS
    + bugs_schedules_sptree.BUGS
    + bugs_scans.BUGS
    + bugs_storm.BUGS
    + bugs_strings.BUGS
    + bugs_elf.BUGS
    + bugs_calls.BUGS
)
