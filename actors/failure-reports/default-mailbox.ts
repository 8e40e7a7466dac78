/**
 * The mailbox for the failure reports of an account that has not chosen one. Its name is random:
 * nobody can take it first, or deposit there without having read it. Nobody knows its first
 * secrets; its owner reads it as the account, and can have new ones.
 */
import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import { type AskFailure, isRefusal, type Peers, type RecordsApi,
  type StorageFailure } from "../../runtime/index.ts"
import { openForOwner, reportsRequestId } from "../mailbox/index.ts"

const dayMs = 86_400_000

const retentionDays = 30

const nameBytes = 16

const hashBytes = 32

/** The name of a mailbox for reports, from 128 random bits. */
export const reportsMailboxName = (random: Buffer = randomBytes(nameBytes)): string =>
  `reports-${random.toString("hex")}`

/** The hash of no known secret. */
const unknownHash = (): string => randomBytes(hashBytes).toString("base64url")

/**
 * Opens the mailbox that an account has for its reports; false if the name is not to be had. It is
 * idempotent. It takes deposits of accounts only: a stranger could imitate a report.
 */
export const openReportsMailbox = (
  records: Pick<RecordsApi, "write">,
  peers: Pick<Peers, "ask">,
  owner: string,
  name: string
): Effect.Effect<boolean, AskFailure | StorageFailure> =>
  Effect.map(
    openForOwner(records, peers, {
      name,
      owner,
      requestId: reportsRequestId,
      settings: {
        title: "Failure reports",
        deposit: "accounts",
        retention: `P${retentionDays}D`,
        retentionMs: retentionDays * dayMs,
        fetch: "never",
        receipts: "none"
      },
      passwordHash: unknownHash(),
      sharedHash: unknownHash()
    }),
    (reply) => !isRefusal(reply)
  )
