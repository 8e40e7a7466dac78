/** A quota of processor time for processes, by the control groups of Linux (version 1 or 2). */
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs"

const periodUs = 100_000

/** The folder of the groups of version 1, else of version 2. */
const rootOf = (): string =>
  existsSync("/sys/fs/cgroup/cpu/cgroup.procs") ? "/sys/fs/cgroup/cpu" : "/sys/fs/cgroup"

/** Lets the process and all its threads run on this many processors; throws without the rights. */
export const limitCpu = (pid: number, cores: number): void => {
  const folder = folderOf(pid)
  mkdirSync(folder, { recursive: true })
  const quotaUs = Math.round(cores * periodUs)
  if (existsSync(`${folder}/cpu.cfs_quota_us`)) {
    writeFileSync(`${folder}/cpu.cfs_period_us`, String(periodUs))
    writeFileSync(`${folder}/cpu.cfs_quota_us`, String(quotaUs))
  } else writeFileSync(`${folder}/cpu.max`, `${quotaUs} ${periodUs}`)
  writeFileSync(`${folder}/cgroup.procs`, String(pid))
}

/** Ends the quota of a process. */
export const releaseCpu = (pid: number): void => {
  writeFileSync(`${rootOf()}/cgroup.procs`, String(pid))
  rmdirSync(folderOf(pid))
}

const folderOf = (pid: number): string => `${rootOf()}/restante-bench-${pid}`
