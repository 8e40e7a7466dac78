/**
 * Which messages of other services take receipts: those whose URI shows `Accept-Post:
 * application/xml` (protocol §7). Otherwise a stranger could make mailboxes post to any URI.
 */
import { LRUCache } from "lru-cache"
import { receiptAcceptanceFreshMs, receiptAcceptancesMax } from "../limits.ts"
import { sha256 } from "../secret-hash.ts"
import type { Pointer } from "./protocol.ts"

/** Whether Accept-Post names the type of a receipt. A range such as any type names nothing. */
export const namesReceipts = (acceptPost: ReadonlyArray<string>): boolean =>
  acceptPost.includes("application/xml")

/** What messages have shown, as this node remembers it. */
export class ReceiptAcceptance {
  /** By a hash of URI and password. Made when it is needed, since an empty cache has its size. */
  private shown: LRUCache<string, { readonly accepts: boolean; readonly atMs: number }> | undefined

  /** Whether the message takes receipts; undefined where that has to be found out. */
  known(pointer: Pointer, nowMs: number): boolean | undefined {
    const found = this.shown?.get(keyOf(pointer))
    return found !== undefined && nowMs < found.atMs + receiptAcceptanceFreshMs
      ? found.accepts
      : undefined
  }

  record(pointer: Pointer, accepts: boolean, atMs: number): void {
    this.shown ??= new LRUCache({ max: receiptAcceptancesMax })
    this.shown.set(keyOf(pointer), { accepts, atMs })
  }
}

const keyOf = ({ password, url }: Pointer): string => sha256(`${url}\n${password ?? ""}`)
