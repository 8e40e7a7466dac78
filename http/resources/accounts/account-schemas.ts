/** The schemas of the fields of a new token, with what is enforced. */
import { TokenScope } from "../../../actors/account/index.ts"
import { list, type Schema, slugPattern } from "../../formats/openapi/index.ts"
import { tokenLabelCharsMax } from "../../limits.ts"

/** One line. */
export const tokenNameSchema: Schema = {
  type: "string",
  pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f\\ufffe\\uffff]*$",
  maxLength: tokenLabelCharsMax
}

export const expirySchema: Schema = {
  type: "string",
  pattern: "^([0-9]{1,12}|P[0-9YMWDTHS]+"
    + "|[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9:.]+([Zz]|[+-][0-9]{2}:[0-9]{2}))?$",
  description: "A time (RFC 3339), a duration (ISO 8601), or seconds from now; by default when the "
    + "token of the request expires, which is also the latest; if it does not expire, never"
}

const words = TokenScope.literals.join("|")

/** The words of rights, with a space or the end behind each. */
const rights = `((${words})( +|$))*`

const slugCharacters = slugPattern.slice(1, -1)

export const scopeSchema: Schema = {
  type: "string",
  pattern: `^ *${rights}(mailbox:${slugCharacters}( +|$)${rights})?$`,
  description: `The rights of the token among those of its account, by default all: words of ${
    TokenScope.literals.join(", ")
  }, and \`mailbox:NAME\` for one mailbox (RFC 6749 §3.3)`
}

const formRights: Schema = { ...scopeSchema, pattern: `^ *${rights}$` }

/** In a form, where the mailbox has a field of its own. */
export const formScopeSchema: Schema = { anyOf: [formRights, list(formRights)] }
