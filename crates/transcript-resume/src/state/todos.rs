//! The to-do list, as the results of its tools give it.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use transcript_format::object::{FromRaw, Object, Raw, Str};
use transcript_format::tool_result::{self, TaskItem, TaskUpdate};

/// One item of the list. What no line contains is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Todo {
    /// Its id. Tasks have one, and the items of the oldest lists.
    pub id: Option<String>,
    /// The task.
    pub content: Option<String>,
    /// `pending`, `in_progress` or `completed`; a task has none before its first change.
    pub status: Option<String>,
    /// The text shown while it is in progress.
    pub active_form: Option<String>,
}

impl Todo {
    /// Returns whether it is not completed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.status.as_deref() != Some("completed")
    }
}

/// Status of a task that was removed from the list.
const DELETED_STATUS: &str = "deleted";

/// The list after the lines so far.
///
/// Up to 2.1.63 a tool writes the whole list (`newTodos`). The later tools add and change single
/// tasks, and contain only id, subject and status; reminders, and the tool that lists them, repeat
/// all tasks.
#[derive(Debug, Default)]
pub(super) struct Todos {
    list: Option<Vec<Todo>>,
    /// The places of tasks by id; `None` while the list is one that is written as a whole.
    tasks: Option<HashMap<String, usize>>,
}

impl Todos {
    /// Reads the result of a tool.
    pub(super) fn add_result(&mut self, result: &Object<'_>) {
        // Most results are of other tools: do not look for each key in turn.
        let is_of_todos =
            |key: &str| key.starts_with("task") || matches!(key, "newTodos" | "new_todos");
        if !result.members().iter().any(|(key, _)| is_of_todos(key)) {
            return;
        }
        if let Some(todos) = result.array("newTodos") {
            self.write(&todos);
        } else if let Some(tasks) = result.array("tasks") {
            self.list_tasks(&tasks);
        } else if let Some(task) = result.read::<TaskItem<'_>>("task") {
            self.put_task(&task);
        } else {
            let update = TaskUpdate::from(result.clone());
            if update.success() != Some(false)
                && let Some(id) = update.task_id()
                && let Some(change) = update.status_change()
            {
                self.change(&id, change.to());
            }
        }
    }

    /// Reads a reminder, which contains the whole list.
    pub(super) fn add_reminder(&mut self, body: &Object<'_>, is_of_tasks: bool) {
        let attachment = body.object("attachment");
        let Some(items) = attachment.and_then(|attachment| attachment.array("content")) else {
            return;
        };
        if is_of_tasks {
            self.list_tasks(&items);
        } else {
            self.write(&items);
        }
    }

    /// Returns the list at the end.
    pub(super) fn finish(self) -> Option<Vec<Todo>> {
        let mut list = self.list?;
        list.retain(|todo| todo.status.as_deref() != Some(DELETED_STATUS));
        Some(list)
    }

    fn write(&mut self, todos: &[Raw<'_>]) {
        let todo = |raw: &Raw<'_>| {
            let todo = tool_result::Todo::from_raw(*raw)?;
            Some(Todo {
                id: todo.id().map(Str::into_owned),
                content: todo.content().map(Str::into_owned),
                status: todo.status().map(Str::into_owned),
                active_form: todo.active_form().map(Str::into_owned),
            })
        };
        self.tasks = None;
        self.list = Some(todos.iter().filter_map(todo).collect());
    }

    fn list_tasks(&mut self, tasks: &[Raw<'_>]) {
        self.tasks = Some(HashMap::new());
        self.list = Some(Vec::new());
        for task in tasks.iter().filter_map(|raw| TaskItem::from_raw(*raw)) {
            self.put_task(&task);
        }
    }

    /// Adds a task, or updates one. Other things are called tasks as well: those of the list have a
    /// subject.
    fn put_task(&mut self, task: &TaskItem<'_>) {
        let (Some(id), Some(subject)) = (task.id(), task.subject()) else {
            return;
        };
        let todo = self.task(&id);
        todo.content = Some(subject.into_owned());
        if let Some(status) = task.status() {
            todo.status = Some(status.into_owned());
        }
        if let Some(form) = task.active_form() {
            todo.active_form = Some(form.into_owned());
        }
    }

    /// Of a task that was added before the path starts only the id is known.
    fn change(&mut self, id: &str, status: Option<Str<'_>>) {
        if let Some(status) = status {
            self.task(id).status = Some(status.into_owned());
        }
    }

    fn task(&mut self, id: &str) -> &mut Todo {
        if self.tasks.is_none() {
            self.list = None;
        }
        let tasks = self.tasks.get_or_insert_default();
        let list = self.list.get_or_insert_default();
        let place = *tasks.entry(id.to_owned()).or_insert_with(|| {
            list.push(Todo {
                id: Some(id.to_owned()),
                ..Todo::default()
            });
            list.len() - 1
        });
        &mut list[place]
    }
}
