/** Runs so many tasks at once; the others wait, and begin in their order. */
export class Turns {
  private readonly max: number
  private underWay = 0
  private readonly waiting: Array<() => void> = []

  constructor(max: number) {
    this.max = max
  }

  /** The result of the task, which begins in its turn. */
  async run<A>(task: () => Promise<A>): Promise<A> {
    if (this.underWay < this.max) this.underWay++
    else await new Promise<void>((resolve) => this.waiting.push(resolve))
    try {
      return await task()
    } finally {
      const next = this.waiting.shift()
      if (next === undefined) this.underWay--
      // It takes over the place.
      else next()
    }
  }
}
