/**
 * Templates of webhooks: a line of text in which `{/pointer}` stands for a value of the webhook's
 * JSON (RFC 6901), and `{/one|/other}` for the first of them that has a text. A value counts with
 * its first line; an object, an array and `null` count as nothing.
 */
import type { WebhookTemplates } from "../../../actors/mailbox/index.ts"
import { webhookValuesCharsMax } from "../../limits.ts"

/** The templates of the senders that the service knows, by the name that an owner writes. */
const senders: ReadonlyMap<string, WebhookTemplates> = new Map([
  ["alertmanager", {
    description: "[{/status}] {/commonLabels/alertname|/alerts/0/labels/alertname} "
      + "{/commonAnnotations/summary|/commonAnnotations/description|/alerts/0/annotations/summary}",
    link: "{/alerts/0/generatorURL|/externalURL}",
    priority: "{/status} {/commonLabels/severity|/alerts/0/labels/severity}",
    tags: "{/status},{/commonLabels/job},{/commonLabels/instance}"
  }],
  ["github", {
    description: "{/repository/full_name|/organization/login} {/action|/ref} {/workflow_run/name} "
      + "{/workflow_run/conclusion} {/issue/title|/pull_request/title|/release/name"
      + "|/release/tag_name|/discussion/title|/alert/security_advisory/summary"
      + "|/alert/rule/description|/alert/secret_type_display_name|/head_commit/message|/zen} "
      + "{/review/state} {/comment/body|/review/body}",
    link: "{/comment/html_url|/review/html_url|/issue/html_url|/pull_request/html_url"
      + "|/release/html_url|/discussion/html_url|/workflow_run/html_url|/alert/html_url|/compare"
      + "|/repository/html_url}",
    priority: "{/alert/security_advisory/severity|/alert/rule/security_severity_level}",
    tags: "{/sender/login}"
  }],
  ["grafana", {
    description: "{/title|/message}",
    link: "{/alerts/0/panelURL|/alerts/0/generatorURL|/externalURL}",
    priority: "{/status} {/commonLabels/severity|/alerts/0/labels/severity}",
    tags: "{/status},{/commonLabels/alertname}"
  }],
  ["stripe", {
    description: "{/type} {/data/object/description|/data/object/customer_email|/data/object/id}",
    link: "https://dashboard.stripe.com/events/{/id}"
  }]
])

/** The names of the senders that the service has templates of. */
export const senderNames: ReadonlyArray<string> = [...senders.keys()]

/** The name of a sender that the service knows, which may be written in any case. */
export const senderIn = (text: string): string | undefined =>
  senderNames.find((name) => name === text.toLowerCase())

/** The templates of a mailbox: those of the sender that its owner names, for what is missing. */
export const templatesOf = (written: WebhookTemplates): WebhookTemplates => {
  const known = senders.get(written.description)
  return known === undefined ? written : { ...known, ...written, description: known.description }
}

/** A pointer without the characters that a template uses itself. */
const pointer = String.raw`/(?:[^{}|~]|~[01])*`

const placeholder = new RegExp(String.raw`\{(${pointer}(?:\|${pointer})*)\}`, "g")

/** The pattern of a template: every brace belongs to a placeholder. */
export const templatePattern = String.raw`^(?:[^{}]|\{${pointer}(?:\|${pointer})*\})*$`

const wholeTemplate = new RegExp(templatePattern)

export const isTemplate = (text: string): boolean => wholeTemplate.test(text)

/** Whether a template is the same for every webhook. */
export const isConstant = (template: string): boolean => !template.includes("{")

const valueAt = (document: unknown, path: string): unknown => {
  let value = document
  for (const part of path.slice(1).split("/")) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~")
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined
    // An array has its length as a property, too.
    if (Array.isArray(value) && !/^\d+$/.test(name)) return undefined
    value = (value as Readonly<Record<string, unknown>>)[name]
  }
  return value
}

/** The first line of a value, at most `charsMax` characters, counted before it is trimmed. */
const textAt = (document: unknown, path: string, charsMax: number): string => {
  const value = valueAt(document, path)
  const isScalar = typeof value === "string" || typeof value === "number" ||
    typeof value === "boolean"
  return isScalar ? String(value).slice(0, charsMax).trim().split(/[\r\n]/, 1)[0] ?? "" : ""
}

/**
 * The text of a template for a JSON document. A template may name one long value hundreds of times,
 * so all values together have at most `webhookValuesCharsMax` characters; the rest is empty.
 */
export const fillTemplate = (template: string, document: unknown): string => {
  let left = webhookValuesCharsMax
  return template.replace(placeholder, (_, paths: string) => {
    for (const path of paths.split("|")) {
      const text = textAt(document, path, left)
      left -= text.length
      if (text !== "") return text
    }
    return ""
  })
}
