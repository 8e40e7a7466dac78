/** The records of all nodes, by the contract of the record port, with the fates of shared calls. */
import { makeMemoryRecords } from "../../memory/index.ts"
import type { RecordChange, RecordsApi } from "../../ports/index.ts"
import type { Computer } from "../time/index.ts"
import type { SharedCalls } from "./shared-calls.ts"

export class SharedRecords {
  readonly inner: RecordsApi = makeMemoryRecords()
  readonly calls: SharedCalls

  constructor(calls: SharedCalls) {
    this.calls = calls
  }

  /** A node's connection; calls before `cutUntilMs` arrive at that time. */
  connect(computer: Computer, cutUntilMs: () => number): RecordsApi {
    const { calls, inner } = this
    const { read, write } = calls.connect(computer, cutUntilMs)
    const shown = (changes: ReadonlyArray<RecordChange>): string =>
      changes.map(({ key, table, value }) => `${table}/${key} ${value}`).join(", ")
    return {
      ...inner,
      write: (changes) => write(`write ${shown(changes)}`, () => inner.write(changes)),
      writeIf: (expected, changes) =>
        write(`write ${shown(changes)}`, () => inner.writeIf(expected, changes)),
      get: (table, key) => read(`get ${table}/${key}`, () => inner.get(table, key)),
      getMany: (table, keys) => read(`get ${table}`, () => inner.getMany(table, keys)),
      range: (table, range) => read(`range of ${table}`, () => inner.range(table, range)),
      keys: (table, ranges) => read(`keys of ${table}`, () => inner.keys(table, ranges)),
      isCurrent: read("is current", () => inner.isCurrent)
    }
  }
}
