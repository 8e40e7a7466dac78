/**
 * Blocks of depositors (protocol §7). An owner's blocks are in the state of its mailbox, the
 * service's in records: both are checked by the same rule.
 */
import { Option, Schema } from "effect"
import { blockReasonCharsMax, blockValueCharsMax } from "./limits.ts"
import { Count } from "./schemas.ts"

/**
 * A block: an account, the network of clients without an account (/24, /48), or the host of the
 * sender or content that a notification names.
 */
export const Block = Schema.Struct({
  id: Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{22}$/)),
  kind: Schema.Literals(["account", "network", "host"]),
  value: Schema.String.check(Schema.isMaxLength(blockValueCharsMax)),
  atMs: Count,
  /** When it ends; left out if it does not end by itself. */
  untilMs: Schema.optionalKey(Count),
  reason: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(blockReasonCharsMax)))
})

export type Block = typeof Block.Type

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Block))

/** The block in a JSON text; undefined for a form that this version does not know. */
export const decodeBlock = (text: string): Block | undefined => Option.getOrUndefined(decode(text))

/** What is known of a deposit. */
export interface BlockedBy {
  readonly account?: string | undefined
  readonly network?: string | undefined
  /** The `item` element as XML. */
  readonly fragment: string
}

/** The texts of `url` and `from` in an item; the service writes both without a prefix. */
const linkPattern = /<(?:url|from)\b[^>]*>([^<]*)</g

const hostPattern = /^\s*https?:\/\/(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:\s]+)/i

/** The hosts of the content and the sender that an item names, in small letters. */
export const hostsOf = (fragment: string): ReadonlyArray<string> =>
  [...fragment.matchAll(linkPattern)].flatMap(([, uri = ""]) => {
    const [, host] = hostPattern.exec(uri) ?? []
    return host === undefined ? [] : [host.toLowerCase().replace(/\.$/, "")]
  })

const isInForce = ({ untilMs }: Block, nowMs: number): boolean =>
  untilMs === undefined || nowMs < untilMs

/** The first block in force that a deposit meets. */
export const findBlock = (
  blocks: ReadonlyArray<Block>,
  { account, fragment, network }: BlockedBy,
  nowMs: number
): Block | undefined => {
  const inForce = blocks.filter((block) => isInForce(block, nowMs))
  if (inForce.length === 0) return undefined
  const hosts = inForce.some(({ kind }) => kind === "host") ? hostsOf(fragment) : []
  return inForce.find(({ kind, value }) =>
    kind === "account"
      ? value === account
      : kind === "network"
      ? value === network
      : hosts.some((host) => host === value || host.endsWith(`.${value}`))
  )
}

/** Adds a block, in place of one of the same id, and removes those that have ended. */
export const withBlock = (
  blocks: ReadonlyArray<Block>,
  block: Block,
  nowMs: number
): ReadonlyArray<Block> => [
  ...blocks.filter((one) => one.id !== block.id && isInForce(one, nowMs)),
  block
]

const words: Readonly<Record<Block["kind"], string>> = {
  account: "the account",
  network: "clients without an account of the network",
  host: "notifications that name the host"
}

/** Who has blocked what, and until when: the detail of the refusal. */
export const blockedText = (by: string, { kind, untilMs, value }: Block): string =>
  `${by} has blocked ${words[kind]} ${value}` +
  (untilMs === undefined ? "" : ` until ${new Date(untilMs).toISOString()}`) +
  "; this request stored nothing"
