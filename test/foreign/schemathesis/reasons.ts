/** Why some requests of schemathesis are answered otherwise than it expects. */
import type { Reason } from "../suite.ts"

const accepted = /: positive_data_acceptance$/
const rejected = /: negative_data_rejection$/
const eitherWay = /: (positive_data_acceptance|negative_data_rejection)$/

/** Of requests that fit the document, and are refused. */
const refused: ReadonlyArray<Reason> = [
  {
    what: "an `Idempotency-Key` that another request had",
    check: accepted,
    detail: /: 422 this key was used with another request /,
    why: "The tool repeats keys; a key stands for one request."
  },
  {
    what: "a cursor that no answer had",
    check: accepted,
    detail:
      /: 400 (after is no cursor|since must be the time|before (must come from|is no position)) ?/,
    why: "A cursor comes from an earlier answer; no pattern can say so."
  },
  {
    what: "a URI of another resource",
    check: accepted,
    detail: /: (400 query must be the URI of a query|422 mailbox \d+ must be the URI of a mailbox)/,
    why: "It names a query or mailbox of this service, which must exist."
  },
  {
    what: "a document that names another row than its URI, or none",
    check: /^(POST|PUT) \/(customers|quotes)(\/\{\w+\})?: positive_data_acceptance$/,
    detail: /: 422 (the document names another customer|symbol says|symbol must be the symbol) ?/,
    why: "`PUT` takes the key from the URI, and `POST /quotes` from the document."
  },
  {
    what: "a query of fields that its table does not have",
    check: /^(POST|PUT) \/queries(\/\{query\})?: positive|^\w+ \/(customers|quotes): positive/,
    detail: /: 4(00|22) ((where|order|return): |not has one condition|a query has \d+ )/,
    why: "What a condition may name depends on `on`: [queries](queries.md)."
  },
  {
    what: "a block of nobody, or of several",
    check: /^POST \/(mailboxes\/\{mailbox\}\/)?blocks: positive_data_acceptance$/,
    detail: /: 422 a block has one of account, network and host /,
    why: "It has one of three; many generators of clients cannot read such a schema."
  },
  {
    what: "`owner` beside `anonymous`",
    check: /^(GET|HEAD) \/content: positive_data_acceptance$/,
    detail: /: 400 owner must be the name of an account, and stand without anonymous /,
    why: "A listing is of one owner; parameters of a query cannot exclude each other."
  },
  {
    what: "406 of the bridge",
    check: /^(POST \/sessions|(GET|HEAD) \/questions\/hard_question): positive_data_acceptance$/,
    detail: /^Schema-valid request rejected: 406 /,
    why: "The answer is wrong (B2, B11 of the protocol)."
  },
  {
    what: "JSON-LD without a node that has a property",
    check: /^POST \/mailboxes\/\{mailbox\}: positive_data_acceptance$/,
    detail: /: 422 the document has no node with a property\b.* with application\/ld\+json/,
    why: "It says nothing that could be a notification; any JSON may be JSON-LD."
  },
  {
    what: "JSON as `text/xml+rss`",
    check: accepted,
    detail: /: 400 text data outside of root node\. with text\/xml\+rss /,
    why: "The tool writes no XML of this type, and sends JSON instead."
  },
  {
    what: "a notification without `url` and `content`",
    check: /^POST \/mailboxes\/\{mailbox\}: positive_data_acceptance$/,
    detail: /: 422 (item\/url is|content is empty:) /,
    why: "It needs one of them; many generators of clients cannot read such a schema."
  },
  {
    what: "400 to HEAD",
    check: /^HEAD \S+: positive_data_acceptance$/,
    detail: /^Schema-valid request rejected: 400 +with /,
    why: "HEAD answers as GET does, whose content has the reason."
  },
  {
    what: "a token or block that expires too early or late",
    check:
      /^POST \/(accounts\/\{account\}\/token|(mailboxes\/\{mailbox\}\/)?blocks): positive_data/,
    detail: /: 422 (a token expires in the future|expires (is|must be) a time)/,
    why: "Both must expire in the future, a token within ten years."
  },
  {
    what: "a retention of more than 100 years",
    check: /^(POST|PUT) \/mailboxes(\/\{mailbox\})?: positive_data_acceptance$/,
    detail: /: 422 retention must be a duration/,
    why: "The pattern of a duration has no such bound."
  },
  {
    what: "the text of an element as its child `text`",
    check: accepted,
    detail:
      /: 422 (an? \w+ has no element text\b.*|content can only hold text) with \w+\/[a-z+]*xml/,
    why: "The tool writes the property `text` so; in XML it is the text itself."
  },
  {
    what: "attributes of a condition or a price as its children",
    check: /^(POST|PUT) \/(queries|quotes)(\/\{\w+\})?: positive_data_acceptance$/,
    detail: /: 422 an? \w+ has no element (field|op|value|by|direction|currency)\b.* with \S+xml/,
    why: "The tool writes the attributes of an inner element so."
  },
  {
    what: "a text and an `href` as one answer",
    check: /^(POST|PUT) \/sessions(\/\{session\}\/\w+)?: positive_data_acceptance$/,
    detail: /: 422 an answer is either text or an href/,
    why: "Many generators of clients cannot read a schema that says so."
  },
  {
    what: "a key of a browser that is no point of P-256",
    check: /^POST \/mailboxes\/\{mailbox\}\/registrations: positive_data_acceptance$/,
    detail: /: 422 keys\.p256dh must be an uncompressed point of P-256/,
    why: "No pattern says which 65 bytes are a point of the curve."
  },
  {
    what: "another topic",
    check: /^POST \/mailboxes\/\{mailbox\}\/registrations: positive_data_acceptance$/,
    detail: /: 422 hub\.topic must be the mailbox/,
    why: "A topic of a mailbox is the mailbox, or one of its representations."
  },
  {
    what: "failure reports for a mailbox that is none of the account",
    check: /^(POST|PUT) \/accounts\/\{account\}: positive_data_acceptance$/,
    detail: /: 422 failure-reports must name a mailbox of \S+, and this is none/,
    why: "It names a mailbox of the account, which must exist."
  },
  {
    what: "a name with `%` before two digits that make a control character",
    check: accepted,
    detail: /: 400 the path is malformed with .*\/%[01][\dA-F]/,
    why: "The tool sends such a `%` as it is, so that it stands for the character."
  },
  {
    what: "a time that no listing of the mailbox has shown",
    check: /^(POST|PUT) \/mailboxes\/\{mailbox\}\/read: positive_data_acceptance$/,
    detail: /: 422 time must be the time of a listing of this mailbox/,
    why: "What is marked as read is what a listing has shown: its time is one of this mailbox."
  },
  {
    what: "a registration that cannot be paused, or pushed to from there",
    check: /^(POST|PUT) \/mailboxes\/\{mailbox\}\/registrations\/.+: positive_data_acceptance$/,
    detail: /: 422 (since|a registration may be paused|\w+ takes effect when)/,
    why: "A position is one of the mailbox, and what is paused has been verified before."
  },
  {
    what: "what is no origin, in the form that pauses relays to origins",
    check: /^POST \/outgoing\/\{account\}\/pauses: positive_data_acceptance$/,
    detail: /: 422 origin number \d+ must be an origin such as /,
    why: "The form has a field of text with an origin on each line."
  },
  {
    what: "a replay without a time",
    check: /^POST \/outgoing\/\{account\}\/retry: positive_data_acceptance$/,
    detail: /: 400 since must be a time /,
    why: "Either the query or the form has it, which no schema of one of them says."
  },
  {
    what: "names that no element of XML can have",
    check: /^POST \/(mailboxes\/\{mailbox\}|outgoing\/\{account\}): positive_data_acceptance$/,
    detail: /: 400 (".*" cannot be an element's name|the name \S+ is reserved)/,
    why: "Unknown properties of a notification in JSON become elements."
  },
  {
    what: "forms of pages with too few fields, or with another text as `document`",
    check: /^POST \/(queries|cabinets)(\/\{\w+\})?: positive_data_acceptance$/,
    detail:
      /: (400 document: |422 (on is one of|a cabinet has one mailbox)).* with \w+\/x-www-form/,
    why: "A form has a document or its fields, and `method=delete` needs no other; no schema of a "
      + "form says so."
  },
  {
    what: "unknown fields in the form of a customer",
    check: /^POST \/customers(\/\{customer\})?: positive_data_acceptance$/,
    detail: /: 422 there is no field .* with \w+\/x-www-form-urlencoded /,
    why: "The form of a customer refuses them; those of other resources ignore them."
  },
  {
    what: "files of customers",
    check: /^PUT \/customers: positive_data_acceptance$/,
    detail: /: 4(00|22) (after )?row \d+: /,
    why: "Each row needs an id, which one that is posted must not have; OpenAPI describes rows of "
      + "CSV by words only."
  },
  {
    what: "a price with an exponent",
    check: /^(POST|PUT) \/quotes(\/\{symbol\})?: positive_data_acceptance$/,
    detail: /: 422 price is a decimal number /,
    why: "A price is kept as sent, and is a decimal without an exponent."
  },
  {
    what: "a number of bytes with a point or an exponent",
    check: /^(POST|PUT) \/mailboxes(\/\{mailbox\})?: positive_data_acceptance$/,
    detail: /: 422 fetch-limit must be a number of bytes, at most \d+ with application\/json /,
    why: "JSON is read as its XML, where such a number consists of digits."
  },
  {
    what: "a kind of actors that the program does not have",
    check: /^(GET|HEAD) \/cluster\/messages: positive_data_acceptance$/,
    detail: /: 400 kind is no kind of actors/,
    why: "The document gives the form of a name, and the page of the cluster the names."
  }
]

/** Of requests that do not fit the document, and are not refused as the tool expects. */
const unexpected: ReadonlyArray<Reason> = [
  {
    what: "204 to OPTIONS",
    check: /^OPTIONS \S+: negative_data_rejection$/,
    detail: /^Schema-violating request accepted: 204 /,
    why: "It tells what a path allows, whatever the names in it are."
  },
  {
    what: "307 of `POST /outgoing`",
    check: /^POST \/outgoing: negative_data_rejection$/,
    detail: /^Schema-violating request accepted: 307 /,
    why: "It redirects to the caller's own mailbox before it reads the content."
  },
  {
    what: "unknown fields of forms",
    check: rejected,
    detail: / with application\/x-www-form-urlencoded .*(unexpected|additionalProperties)/,
    why: "They are ignored, as browsers also send the names of buttons."
  },
  {
    what: "a wrong time or an empty cursor in the query of a replay",
    check: /^POST \/outgoing\/\{account\}\/retry: negative_data_rejection$/,
    detail: /: 202 .*parameter `(since|after)` in query/,
    why: "The time of the form counts, and an empty cursor is none."
  },
  {
    what: "an empty value of a parameter in the query of a listing",
    check: /^(GET|HEAD) \S+: negative_data_rejection$/,
    detail: /: 200 .*[?&](limit|since)=[:&].*parameter `\1` in query/,
    why: "Browsers send the empty fields of a form; they count as none."
  },
  {
    what: "characters that XML cannot hold, in XML",
    check: rejected,
    detail: /: 20\d .* with \w+\/[a-z+]*xml.*violates `pattern`/,
    why: "The tool removes them as it writes the document, which then fits."
  },
  {
    what: "any `mailbox` of the home page",
    check: /^(GET|HEAD) \/: negative_data_rejection$/,
    detail: /: 200 .*parameter `mailbox` in query/,
    why: "The page ignores what names no mailbox."
  },
  {
    what: "`href` in a request",
    check: rejected,
    detail:
      /: 20\d .*Invalid component: in body - (href: |violates `format` at \/properties\/href)/,
    why: "It is ignored, so that what GET answers can be sent back."
  },
  {
    what: "bytes above 127 at the ends of the value of a header field",
    check: rejected,
    detail: /: 20\d .* in header - (slug: )?(value not matching|violates `pattern`)/i,
    why: "The native parser removes them as it removes spaces; the service sees the rest."
  },
  {
    what: "an array of one value, or of none, for a value in JSON",
    check: rejected,
    detail: /: 20\d .* with application\/json .*\(was [^)]*, became array\)/,
    why: "JSON is read as its XML, where an array is as many elements; several are 422."
  },
  {
    what: "unknown properties that are null or an array of none, in JSON",
    check: rejected,
    detail: /: 20\d .* with application\/json \{.*: ?(null|\[ ?\]).*additionalProperties/,
    why: "JSON is read as its XML, where they are no elements."
  },
  {
    what: "`Priority`, `Tags` and `Click` beside a document",
    check: /^POST \/mailboxes\/\{mailbox\}: negative_data_rejection$/,
    detail:
      /: 202 .* with (?!text\/plain|nothing)\S+ .*parameter `(Priority|Tags|Click)` in header/,
    why: "They describe plain text. Elsewhere they are ignored: browsers send a `Priority` of the "
      + "same name, which is that of their request (RFC 9218)."
  },
  {
    what: "an empty object as a text in JSON",
    check: rejected,
    detail: /: 20\d .* with application\/json .*Incorrect type/,
    why: "JSON is read as its XML, where it is an empty element, as an empty text is."
  },
  {
    what: "values of other types in XML",
    check: rejected,
    detail: /: 20\d .* with \w+\/[a-z+]*xml.*incorrect type/i,
    why: "Each value is a text there, also `null`; a text between elements is ignored."
  }
]

export const reasons: ReadonlyArray<Reason> = [
  {
    what: "412",
    check: eitherWay,
    detail: /^Schema-\w+ request \w+: 412 /,
    why: "A precondition of the request does not hold. It counts before the content "
      + "(RFC 9110 §13.2.1)."
  },
  {
    what: "410",
    check: eitherWay,
    detail: /^Schema-\w+ request \w+: 410 /,
    why: "An earlier request deleted the resource."
  },
  ...refused,
  ...unexpected,
  {
    what: "431 in HTML",
    check: /^\w+ \/\S*: \w+$/,
    detail: /: 431 <h1>Request Header Fields Too Large</,
    why: "The native parser answers so before the service sees the request."
  },
  {
    what: "a deposit without `Content-Type` in its answer",
    check: /^POST \/mailboxes\/\{mailbox\}: content_type_conformance$/,
    detail: /^Missing Content-Type header: 20[12] /,
    why: "Only the form of a page is answered with a page; other deposits without content."
  }
]
