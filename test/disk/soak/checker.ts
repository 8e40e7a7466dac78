/** Samples of a service under steady load, and the check that nothing grows. */
/** One sample of a soak; its counts are since the previous sample. */
export interface Sample {
  /** Time since the start of the load. */
  readonly atMs: number
  readonly operations: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly rssBytes: number
  readonly files: number
  readonly diskBytes: number
  /** Approximate bytes of live data in the store. */
  readonly liveBytes: number
}

const MB = 1024 * 1024

/** Tolerated variation of memory, the disk and p99. */
const RSS_SLACK_BYTES = 48 * MB

const FILES_SLACK = 24

/** Logs and tables that the store rewrites once they reach some size. */
const DISK_SLACK_BYTES = 256 * MB

const P99_SLACK_MS = 30

const RSS_RATIO = 1.25

const DISK_PER_LIVE = 4

const P99_RATIO = 3

/** Other processes may disturb some samples: p99 is compared over the best quarter of them. */
const GOOD = 0.25

const at = (numbers: ReadonlyArray<number>, part: number): number =>
  [...numbers].sort((one, other) => one - other)[Math.floor(numbers.length * part)] ?? 0

/** The second quarter, after warming up, and the last quarter. */
const quarters = (samples: ReadonlyArray<Sample>) => {
  const from = (part: number) => Math.floor(samples.length * part)
  return { warm: samples.slice(from(0.25), from(0.5)), late: samples.slice(from(0.75)) }
}

/** Reports growth, one sentence each; empty when the service can continue indefinitely. */
export const faultsOf = (samples: ReadonlyArray<Sample>): ReadonlyArray<string> => {
  const { late, warm } = quarters(samples)
  const faults: Array<string> = []
  const compare = (
    what: string,
    of: (sample: Sample) => number,
    most: (warm: number) => number,
    part = 0.5
  ) => {
    const [before, after] = [at(warm.map(of), part), at(late.map(of), part)]
    const bound = most(before)
    if (after > bound) faults.push(`${what}: from ${before} to ${after}, more than ${bound}`)
  }
  compare("memory", (one) => one.rssBytes, (bytes) => bytes * RSS_RATIO + RSS_SLACK_BYTES)
  compare("file descriptors", (one) => one.files, (files) => files + FILES_SLACK)
  compare("p99", (one) => one.p99Ms, (ms) => ms * P99_RATIO + P99_SLACK_MS, GOOD)
  const crowded = late.filter(
    ({ diskBytes, liveBytes }) => diskBytes > DISK_PER_LIVE * liveBytes + DISK_SLACK_BYTES
  )
  const [first] = crowded
  if (first !== undefined && crowded.length > late.length / 2) {
    faults.push(`the disk: ${first.diskBytes} bytes of ${first.liveBytes} that are live`)
  }
  return faults
}
