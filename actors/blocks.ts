/**
 * Blocks of depositors (protocol §7). An owner's blocks are in the state of its mailbox, the
 * service's in records: both are checked by the same rule.
 */
import { Option, Schema } from "effect"
import { blockReasonCharsMax, blockValueCharsMax } from "./limits.ts"
import { parseUrl } from "./parse-url.ts"
import { Count } from "./schemas.ts"

/**
 * A block: an account, the network of clients without an account (/24, /48), or a host that
 * a notification names: of its content, its sender, or what to open.
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

/**
 * A comment or instruction; CDATA, with its text; a tag, with its local name and whether it closes
 * or is empty; or a text. Elements that the service does not know are stored as they were sent, so
 * that `>` may be in their attributes.
 */
const partPattern = new RegExp(
  [
    "<!--[^]*?-->|<\\?[^]*?\\?>",
    "<!\\[CDATA\\[(?<literal>[^]*?)\\]\\]>",
    "<(?<closing>/?)(?:[^\\s/>:]*:)?(?<name>[^\\s/>:]+)" +
    "(?:[^>\"']|\"[^\"]*\"|'[^']*')*?(?<empty>/?)>",
    "(?<text>[^<]+)"
  ].join("|"),
  "g"
)

/** The elements of an item whose text is a link for readers. */
const linkNames: ReadonlySet<string> = new Set(["url", "from", "click"])

/** The texts of the links of an item. A reader gets the text within other elements, too. */
const linksOf = (fragment: string): ReadonlyArray<string> => {
  const links: Array<string> = []
  let depth = 0
  let link = ""
  for (const { groups = {} } of fragment.matchAll(partPattern)) {
    const { closing, empty, literal = "", name, text = "" } = groups
    if (depth > 0) link += literal + unescapeText(text)
    if (name === undefined || empty === "/") continue
    if (closing === "") {
      if (depth > 0 || linkNames.has(name)) depth++
    } else if (depth > 0 && --depth === 0) {
      links.push(link)
      link = ""
    }
  }
  return links
}

const namedCharacters: Readonly<Record<string, string>> = {
  amp: "&",
  apos: "'",
  gt: ">",
  lt: "<",
  quot: "\""
}

const referencePattern = /&(?:(amp|apos|gt|lt|quot)|#0*(\d{1,7})|#x0*([\da-f]{1,6}));/gi

/** The text of XML character data. */
const unescapeText = (text: string): string =>
  text.replace(referencePattern, (reference, name = "", decimal = "", hex = "") => {
    if (name !== "") return namedCharacters[name] ?? reference
    const code = decimal === "" ? Number.parseInt(hex, 16) : Number(decimal)
    return code <= 0x10ffff ? String.fromCodePoint(code) : reference
  })

/** A host as HTTP URLs have it: in small letters, without escapes and without a dot at its end. */
export const normalHost = (host: string): string | undefined =>
  parseUrl(`http://${host}`)?.hostname.replace(/\.$/, "") || undefined

/** The host of a relative link, which no link can name. */
const noHost = "relative.invalid"

/**
 * Pages have one of these schemes. `http:host` is a path in a page of the same scheme, and a host
 * in one of another.
 */
const bases = [`http://${noHost}/`, `https://${noHost}/`]

/** A link that is the same in a page of any scheme. */
const absolutePattern = /^[a-z][a-z0-9+.-]*:\/\//i

/** The hosts that browsers read in a link. */
const hostsIn = (link: string): ReadonlyArray<string> =>
  bases.slice(0, absolutePattern.test(link) ? 1 : bases.length).flatMap((base) => {
    const hostname = parseUrl(link, base)?.hostname ?? ""
    if (hostname === "" || hostname === noHost) return []
    // The parser leaves a host of other schemes as it is.
    return [normalHost(hostname) ?? hostname.toLowerCase()]
  })

/**
 * The hosts of the content, of the sender and of what to open that an item names, each once, as
 * browsers read them: another spelling of a host evades no block.
 */
export const hostsOf = (fragment: string): ReadonlyArray<string> => [
  ...new Set(linksOf(fragment).flatMap(hostsIn))
]

const isInForce = ({ untilMs }: Block, nowMs: number): boolean =>
  untilMs === undefined || nowMs < untilMs

/** The host, and the domains that it is in, the largest last. */
const domainsOf = (host: string): ReadonlyArray<string> => {
  const domains = [host]
  for (let dot = host.indexOf("."); dot !== -1; dot = host.indexOf(".", dot + 1)) {
    domains.push(host.slice(dot + 1))
  }
  return domains
}

/** The first block in force that a deposit meets. */
export const findBlock = (
  blocks: ReadonlyArray<Block>,
  { account, fragment, network }: BlockedBy,
  nowMs: number
): Block | undefined => {
  const inForce = blocks.filter((block) => isInForce(block, nowMs))
  if (inForce.length === 0) return undefined
  const blocked = new Set(inForce.flatMap(({ kind, value }) => kind === "host" ? [value] : []))
  const hosts = blocked.size === 0 ? [] : hostsOf(fragment)
  const named = new Set(hosts.flatMap((host) => domainsOf(host).filter((one) => blocked.has(one))))
  return inForce.find(({ kind, value }) =>
    kind === "account"
      ? value === account
      : kind === "network"
      ? value === network
      : named.has(value)
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
