/** The form that checks a signature, and what the check has found; the page needs no script. */
import type { RegistrationView } from "../../../actors/registration/index.ts"
import type { SignatureDiagnosis } from "../../../client/index.ts"
import { badge, type Html, html, type HtmlForm, link, nothing,
  renderForm } from "../../formats/html/index.ts"
import type { FormFields, ResourceView } from "../../formats/index.ts"
import { element, printable } from "../../formats/xml/index.ts"
import type { MailboxRef } from "../mailboxes/index.ts"
import { collectionHref, type RegistrationRef, signatureCheckPath } from "./registration-access.ts"

/** What a client asks about. */
export interface CheckedRequest {
  readonly headers: string
  readonly body: string
}

/**
 * The form, with what was typed before. Its fields have no greatest length, since a browser would
 * cut what is pasted, and the body would be another one.
 */
export const signatureCheckForm = (
  action: string,
  { body = "", headers = "" }: Partial<CheckedRequest> = {}
): HtmlForm => ({
  id: "signature",
  action,
  legend: "Check the signature of a push that your program rejects",
  controls: [
    {
      name: "headers",
      label: "Header fields",
      type: "textarea",
      code: true,
      required: true,
      value: headers,
      hint: "As your program received them, one on each line: webhook-id: …"
    },
    {
      name: "body",
      label: "Body",
      type: "textarea",
      code: true,
      value: body,
      hint: "As your program received it, byte for byte. The service says what is wrong with them, "
        + "and keeps neither."
    }
  ],
  submit: "Check the signature"
})

/** The form on the page of a registration whose pushes are signed. */
export const signatureForm = (registration: RegistrationRef, { form }: RegistrationView): Html =>
  form === "webpush"
    ? nothing
    : renderForm(signatureCheckForm(signatureCheckPath(registration)), "rare")

/** The fields of a form that was sent. */
export const checkedFields = (fields: FormFields): CheckedRequest => ({
  headers: fields.get("headers") ?? "",
  body: fields.get("body") ?? ""
})

const checkPage = (
  registration: RegistrationRef,
  { advice, problem, result, subject }: SignatureDiagnosis,
  checked: CheckedRequest
): Html =>
  html`<p>${result === "right" ? badge("good", "✓ right") : badge("bad", `✗ ${result}`)}</p>
<dl class="facts"><dt>What</dt><dd>${problem}</dd>
<dt>Of</dt><dd>${subject}</dd>
<dt>What to do</dt><dd>${advice}</dd></dl>
${renderForm(signatureCheckForm(signatureCheckPath(registration), checked))}
<p>${link(registration.path, "Status of the registration")}</p>`

/** What a check has found; it shows neither a secret nor the signature that would be right. */
export const signatureCheckView = (
  mailbox: MailboxRef,
  registration: RegistrationRef,
  diagnosis: SignatureDiagnosis,
  checked: CheckedRequest
): ResourceView => {
  const { advice, problem, result, subject } = diagnosis
  return {
    title: "The signature of a push",
    tree: () =>
      element(
        "signature-check",
        { result },
        element("problem", {}, printable(problem)),
        element("subject", {}, printable(subject)),
        element("advice", {}, printable(advice))
      ),
    body: () => checkPage(registration, diagnosis, checked),
    links: [
      { rel: "mailbox", href: mailbox.href },
      { rel: "collection", href: collectionHref(mailbox), title: "All registrations" },
      { rel: "up", href: registration.href, title: "The registration" }
    ]
  }
}
