/** Scheduled events in the order of their times; equal times in the order of scheduling. */
export interface ScheduledEvent {
  atMs: number
  readonly order: number
  readonly run: () => void
  /** False: the event is canceled. */
  live: boolean
}

const isBefore = (one: ScheduledEvent, other: ScheduledEvent): boolean =>
  one.atMs === other.atMs ? one.order < other.order : one.atMs < other.atMs

export class EventHeap {
  private readonly events: Array<ScheduledEvent> = []

  peek(): ScheduledEvent | undefined {
    return this.events[0]
  }

  push(event: ScheduledEvent): void {
    const { events } = this
    let at = events.length
    events.push(event)
    while (at > 0) {
      const above = (at - 1) >> 1
      const parent = events[above]
      if (parent === undefined || !isBefore(event, parent)) break
      events[at] = parent
      at = above
    }
    events[at] = event
  }

  pop(): ScheduledEvent | undefined {
    const { events } = this
    const first = events[0]
    const last = events.pop()
    if (first === undefined || last === undefined || events.length === 0) return first
    let at = 0
    for (;;) {
      const left = events[2 * at + 1]
      const right = events[2 * at + 2]
      if (left === undefined) break
      const isRight = right !== undefined && isBefore(right, left)
      const least = isRight ? right : left
      if (!isBefore(least, last)) break
      events[at] = least
      at = 2 * at + (isRight ? 2 : 1)
    }
    events[at] = last
    return first
  }
}
