;;; driver.el --- What a test asks of Emacs  -*- lexical-binding: t -*-

;; The configuration itself is README's; nothing of it is repeated here.

(require 'cl-lib)
(require 'json)
(require 'server)
(require 'subr-x)

(defvar driver-offered nil "Titles of the code actions that were offered.")

(defun driver-buffer ()
  "The buffer of the script, which is the file on the command line."
  (get-file-buffer (car (last command-line-args))))

;; A user who agrees to what the server wants to edit.
(advice-add 'y-or-n-p :override (lambda (&rest _) t))

(defun driver-choose (title)
  "A user who completes to the candidate that begins with TITLE."
  (lambda (_prompt candidates &rest _)
    (let ((titles (mapcar #'car candidates)))
      (setq driver-offered (append driver-offered titles))
      (cl-find-if (lambda (each) (string-prefix-p title each)) titles))))

(defun driver-later (action)
  "Call ACTION in the script's buffer, once Emacs has answered.
What it signals stands among the messages then."
  (run-at-time 0 nil (lambda () (with-current-buffer (driver-buffer) (funcall action))))
  t)

(defun driver-text ()
  "The text; lines end with a line feed here, whatever they end with in the file."
  (with-current-buffer (driver-buffer)
    (save-restriction (widen) (buffer-substring-no-properties (point-min) (point-max)))))

(defun driver-save ()
  "Save the script."
  (with-current-buffer (driver-buffer) (save-buffer))
  t)

(defun driver-save_all ()
  "Save all files."
  (save-some-buffers t)
  t)

(defun driver-diagnostics ()
  "Code and line of what Flymake shows; Eglot writes the code into the text."
  (with-current-buffer (driver-buffer)
    (vconcat
     (cl-loop for each in (flymake-diagnostics)
              for text = (flymake-diagnostic-text each)
              when (string-match "\\`[^:]* \\[\\(.*?\\)\\]: " text)
              collect (list (match-string 1 text)
                            (line-number-at-pos (flymake-diagnostic-beg each) t))))))

(defun driver-apply (title line kind)
  "Apply the code action of KIND at LINE that begins with TITLE.
An empty KIND stands for all of them."
  (driver-later
   (lambda ()
     (goto-char (point-min))
     (forward-line (1- line))
     (back-to-indentation)
     (cl-letf (((symbol-function 'completing-read) (driver-choose title))
               (last-nonmenu-event ?\r))
       (eglot-code-actions (point) nil (and (not (string-empty-p kind)) kind) t)))))

(defun driver-execute (command)
  "Run COMMAND of the server for the script."
  (driver-later
   (lambda ()
     (eglot-execute-command (eglot-current-server) (intern command)
                            (vector (list :uri (eglot--path-to-uri buffer-file-name)))))))

(defun driver-offered ()
  "The titles of the code actions that were offered so far."
  (vconcat driver-offered))

(defun driver-log ()
  "The messages, and all that Eglot says and logs."
  (mapconcat (lambda (buffer) (with-current-buffer buffer (buffer-string)))
             (cl-remove-if-not
              (lambda (buffer) (string-match-p "\\*EGLOT\\|\\*Messages\\*" (buffer-name buffer)))
              (buffer-list))
             "\n"))

(defun driver-quit ()
  "Quit without saving."
  (dolist (buffer (buffer-list))
    (when (buffer-file-name buffer)
      (with-current-buffer buffer (set-buffer-modified-p nil))))
  (run-at-time 0 nil #'kill-emacs)
  t)

(defun driver-call ()
  "Answer the call; both are JSON in files."
  (let* ((home (getenv "TMPDIR"))
         (json-array-type 'list)
         (call (json-read-file (expand-file-name "call" home)))
         (answer (apply (intern (concat "driver-" (alist-get 'name call))) (alist-get 'arguments call))))
    (let ((coding-system-for-write 'utf-8-unix))
      (with-temp-file (expand-file-name "answer" home)
        (insert (json-encode (list (cons 'answer answer))))))))

(setq server-socket-dir (getenv "TMPDIR")
      server-name "socket")
(server-start)

;;; driver.el ends here
