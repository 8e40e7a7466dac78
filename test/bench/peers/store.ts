/** What a store behind the HTTP server of `http-store.ts` does. */

/** A document for a mailbox. */
export interface Deposit {
  readonly mailbox: string
  readonly body: Buffer
}

export interface Store {
  /** The most groups that are being written at a time. */
  readonly groupsInFlight: number
  /** The most deposits of a group. */
  readonly groupMax: number
  /** Resolves when all of the group is on the disk. */
  readonly write: (group: ReadonlyArray<Deposit>) => Promise<void>
  /** How many documents are stored. */
  readonly count: () => Promise<number>
}
