/** Samples of a service under steady load, and whether anything in them grows. */

/** One moment of a soak; what is counted is since the last one. */
export interface Sample {
  /** Since the load began. */
  readonly atMs: number
  readonly operations: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly rssBytes: number
  readonly files: number
  readonly diskBytes: number
  /** About what is in the store and was not removed. */
  readonly liveBytes: number
}

const MB = 1024 * 1024
/** What memory, the disk and p99 may vary by, whatever they are. */
const RSS_SLACK_BYTES = 48 * MB
const FILES_SLACK = 24
/** Logs and tables that are written again when they have got some size. */
const DISK_SLACK_BYTES = 256 * MB
const P99_SLACK_MS = 30
const RSS_RATIO = 1.25
const DISK_PER_LIVE = 4
const P99_RATIO = 3
/** Others have the machine now and then: times are compared of the best quarter of the moments. */
const GOOD = 0.25

const at = (numbers: ReadonlyArray<number>, part: number): number =>
  [...numbers].sort((one, other) => one - other)[Math.floor(numbers.length * part)] ?? 0

/** The second quarter, when all is warm, and the last. */
const quarters = (samples: ReadonlyArray<Sample>) => {
  const from = (part: number) => Math.floor(samples.length * part)
  return { warm: samples.slice(from(0.25), from(0.5)), late: samples.slice(from(0.75)) }
}

/** What grows, a sentence for each; none when the service could go on for ever. */
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
