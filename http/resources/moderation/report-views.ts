/** The documents and pages of reports, and of the depositor of a notification. */
import { deleteForm, emptyState, type Html, html, link, type PageLink, renderForm, table,
  timeAt } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element, isoTime, optionalElement } from "../../formats/xml/index.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"
import { blockForm } from "./block-views.ts"

export const reportsPath = "/reports"

export const reportPath = (id: string): string => `${reportsPath}/${id}`

/** Who deposited a notification, and the hosts that it names. */
export interface NotificationSource {
  readonly account?: string | undefined
  readonly network?: string | undefined
  readonly hosts: ReadonlyArray<string>
}

export interface Report extends NotificationSource {
  readonly mailbox: string
  readonly notification: string
  readonly reason: string
  readonly atMs: number
  /** The account of the reader; left out if the reader has read by a secret. */
  readonly by?: string | undefined
}

export interface ListedReport {
  readonly id: string
  readonly report: Report
}

const sourceElements = ({ account, hosts, network }: NotificationSource) => [
  optionalElement("account", account),
  optionalElement("network", network),
  ...hosts.map((host) => element("host", {}, host))
]

const mailboxPathOf = ({ mailbox }: Report): string => `/mailboxes/${mailbox}`

const notificationPathOf = (report: Report): string =>
  `${mailboxPathOf(report)}/notifications/${report.notification}`

const reportElement = (service: Service, { id, report }: ListedReport): Element =>
  element(
    "report",
    {
      href: absoluteUri(service, reportPath(id)),
      time: isoTime(report.atMs),
      mailbox: absoluteUri(service, mailboxPathOf(report)),
      notification: absoluteUri(service, notificationPathOf(report)),
      by: report.by
    },
    element("reason", {}, report.reason),
    ...sourceElements(report)
  )

const sourceText = ({ account, network }: NotificationSource): string =>
  account === undefined ? network ?? "unknown" : `account ${account}`

const rowOf = ({ id, report }: ListedReport): Html =>
  html`<tr><td><a href="${reportPath(id)}">${timeAt(report.atMs)}</a> <span class="quiet">by ${
    report.by ?? "a reader"
  }</span></td><td>${report.reason} <span class="quiet">in the mailbox ${
    link(mailboxPathOf(report), report.mailbox)
  }</span></td><td>${sourceText(report)} <span class="quiet">${
    report.hosts.join(", ")
  }</span></td></tr>
`

/** A page of the reports. */
export const reportsView = (
  service: Service,
  reports: ReadonlyArray<ListedReport>,
  next: ReadonlyArray<PageLink>
): ResourceView => ({
  title: "Reports",
  tree: element("reports", {}, ...reports.map((one) => reportElement(service, one))),
  body: () =>
    reports.length === 0
      ? emptyState("No notification is reported.")
      : table(
        "Reports",
        ["Reported", "Reason", "Depositor and hosts"],
        reports.map(rowOf),
        "stack"
      ),
  links: [{ rel: "related", href: "/blocks", title: "Blocks" }, ...next]
})

/** One report, with the forms that remove the notification and the report, and that block. */
export const reportView = (service: Service, listed: ListedReport): ResourceView => {
  const { id, report } = listed
  return {
    title: `Report of a notification at ${report.mailbox}`,
    tree: reportElement(service, listed),
    forms: html`${renderForm(blockForm("/blocks"))}${
      deleteForm(reportPath(id), "Remove this report")
    }`,
    links: [
      { rel: "collection", href: reportsPath, title: "All reports" },
      { rel: "related", href: notificationPathOf(report), title: "The notification" }
    ]
  }
}

/** The depositor of a notification, with the form that blocks. */
export const depositorView = (source: NotificationSource, blocksPath: string): ResourceView => ({
  title: "Depositor",
  tree: element("depositor", {}, ...sourceElements(source)),
  forms: renderForm(blockForm(blocksPath)),
  links: [{ rel: "related", href: blocksPath, title: "Blocks" }]
})
