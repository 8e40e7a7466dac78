/** The schemas of what is read of blocks and reports, with what is enforced. */
import { blockReasonCharsMax, blockValueCharsMax } from "../../../actors/index.ts"
import { type Properties, type Schema, slugPattern, text,
  visibleText } from "../../formats/openapi/index.ts"
import { reportReasonCharsMax } from "../../limits.ts"
import { expirySchema } from "../accounts/index.ts"

const octet = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"

const ipv4 = `${octet}(\\.${octet}){3}(/(3[0-2]|[12]?[0-9]))?`

const group = "[0-9a-fA-F]{1,4}"

/** Addresses in which `::` stands behind one group or more, and before one or more. */
const shortened = [1, 2, 3, 4, 5, 6].map((before) =>
  `(${group}:){1,${before}}(:${group}){1,${7 - before}}`
)

const ipv6Address = [
  `(${group}:){7}${group}`,
  ...shortened,
  `(${group}:){1,7}:`,
  `:(:${group}){1,7}`,
  "::"
].join("|")

const ipv6 = `(${ipv6Address})(/(12[0-8]|1[01][0-9]|[1-9]?[0-9]))?`

/** Of a host name, an origin or a URI; no control character or space is in its path. */
const host = "([hH][tT][tT][pP][sS]?://)?"
  + "([a-zA-Z0-9_]([a-zA-Z0-9._-]*[a-zA-Z0-9_])?|\\[[0-9a-fA-F:.]+\\])"
  + "(:[0-9]+)?(/[^\\u0000-\\u0020\\u007f-\\u009f\\ufffe\\uffff]*)?"

/** A field that matches or is empty, as a field of a form that nobody filled in. */
const blockValue = (pattern: string, description: string): Schema => ({
  type: "string",
  pattern: `^(${pattern})?$`,
  maxLength: blockValueCharsMax,
  description
})

/** One of the first three names what is blocked. */
export const newBlockFields: Properties = {
  account: blockValue(slugPattern.slice(1, -1), "The name of an account"),
  network: blockValue(
    `${ipv4}|${ipv6}`,
    "An address, or a prefix such as 203.0.113.0/24; its whole /24 or, of IPv6, /48 is blocked"
  ),
  host: blockValue(host, "A host such as spam.example, or an origin or URI at it"),
  expires: expirySchema,
  reason: { ...text, maxLength: blockReasonCharsMax }
}

export const reportReasonSchema: Schema = { ...visibleText, maxLength: reportReasonCharsMax }
