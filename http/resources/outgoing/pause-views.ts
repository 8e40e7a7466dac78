/** The document and the forms of the pauses of an outgoing mailbox. */
import { pausedOriginsMax } from "../../../actors/index.ts"
import type { Pauses } from "../../../actors/outgoing-mailbox/index.ts"
import { type Control, type Html, html, type HtmlForm, link, methodControl, nothing, renderForm,
  timeAt, versionControl } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element, isoTime } from "../../formats/xml/index.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"
import type { OutgoingRef } from "./outgoing-access.ts"

export const pausesPath = ({ path }: Pick<OutgoingRef, "path">): string => `${path}/pauses`

const hidden = (name: string, value: string): Control => ({
  name,
  label: "",
  type: "hidden",
  value
})

/** Pauses all relays, or resumes them; the paused origins stay. */
const allForm = (mailbox: OutgoingRef, { origins, pausedAtMs, version }: Pauses): HtmlForm => ({
  action: pausesPath(mailbox),
  ...pausedAtMs === undefined
    ? {
      id: "pause",
      legend: "Pause: what you send waits here until you resume",
      submit: "Pause"
    }
    : {
      id: "resume",
      legend: "Resume: what waits is sent",
      submit: "Resume"
    },
  controls: [
    methodControl("put"),
    versionControl(version),
    hidden("status", pausedAtMs === undefined ? "paused" : "active"),
    ...origins.map(({ origin }) => hidden("origin", origin))
  ]
})

/** The form that pauses relays to some origins. */
const originsForm = (mailbox: OutgoingRef, { origins, pausedAtMs, version }: Pauses): HtmlForm => ({
  id: "origins",
  action: pausesPath(mailbox),
  legend: "Pause relays to some receivers, for example while one is down for maintenance",
  controls: [
    methodControl("put"),
    versionControl(version),
    hidden("status", pausedAtMs === undefined ? "active" : "paused"),
    {
      name: "origin",
      label: "Origins",
      type: "textarea",
      rows: 3,
      value: origins.map(({ origin }) => origin).join("\n"),
      hint: `One a line, such as https://receiver.example; at most ${pausedOriginsMax}.`
    }
  ],
  submit: "Save"
})

/** The form by which a person who wants this status goes on from what is paused now. */
export const currentForm = (mailbox: OutgoingRef, pauses: Pauses, isPaused: boolean): HtmlForm =>
  isPaused === (pauses.pausedAtMs !== undefined)
    ? originsForm(mailbox, pauses)
    : allForm(mailbox, pauses)

/** What is paused, for a person; nothing if nothing is. */
export const pausedNotice = (mailbox: OutgoingRef, { origins, pausedAtMs }: Pauses): Html =>
  html`${
    pausedAtMs === undefined
      ? nothing
      : html`<p><strong>Paused</strong> since ${
        timeAt(pausedAtMs)
      }: what is sent waits here until it is resumed.</p>
`
  }${
    origins.length === 0 ?
      nothing :
      html`<p>${link(pausesPath(mailbox), "Relays to some receivers are paused")}: ${
        origins.map(({ origin }) => origin).join(", ")
      }.</p>
`
  }`

/** The button that pauses or resumes, and the way to the paused origins. */
export const pauseForms = (mailbox: OutgoingRef, pauses: Pauses): Html =>
  html`${renderForm(allForm(mailbox, pauses), "secondary")}<p>${
    link(pausesPath(mailbox), "Pause relays to some receivers")
  }</p>
`

/** The document of the pauses. */
export const pausesElement = (href: string, { origins, pausedAtMs }: Pauses): Element =>
  element(
    "pauses",
    { href, status: pausedAtMs === undefined ? "active" : "paused", since: isoTime(pausedAtMs) },
    ...origins.map(({ atMs, origin }) => element("pause", { origin, since: isoTime(atMs) }))
  )

export const pausesView = (
  service: Service,
  mailbox: OutgoingRef,
  pauses: Pauses
): ResourceView => {
  const { origins, pausedAtMs } = pauses
  return {
    title: `Pauses of the outgoing mailbox of ${mailbox.account}`,
    tree: () => pausesElement(absoluteUri(service, pausesPath(mailbox)), pauses),
    body: () =>
      html`${
        pausedAtMs === undefined && origins.length === 0
          ? html`<p>Nothing is paused.</p>
`
          : nothing
      }${pausedNotice(mailbox, { ...pauses, origins: [] })}${
        origins.length === 0 ?
          nothing :
          html`<ul class="entries">${
            origins.map(({ atMs, origin }) =>
              html`<li><p>${origin}</p>
<p class="quiet">paused since ${timeAt(atMs)}</p></li>
`
            )
          }</ul>
`
      }`,
    forms: () =>
      html`${renderForm(allForm(mailbox, pauses), "secondary")}${
        renderForm(originsForm(mailbox, pauses))
      }`,
    links: [{ rel: "up", href: mailbox.path, title: "The outgoing mailbox" }]
  }
}
